"""The small backbones and the heads."""

import keras
import numpy as np
import pytest
import references
import tiny
import trained

from alim_keras import networks


@pytest.mark.parametrize(
    ("shape", "flat"),
    [
        ((15, 15, 1), 7 * 7 * 8),  # One pooling; 8 filters.
        ((16, 16, 1), 4 * 4 * 8),  # Two: 16 / 4.
        ((32, 16, 3), 8 * 4 * 8),
    ],
)
def test_shapes_of_small_cnn(shape, flat):
    network = networks.small_cnn(shape, width=4)
    assert network.get_layer("flatten").output.shape == (None, flat)
    assert network.output_shape == (None, 16)


def test_small_cnn_is_as_described():
    # 3x3 kernels without bias, 1*4 and 4*8; a dense layer from 4*4*8 to 16;
    # two numbers per channel of batch normalisation, 4 + 8 + 16.
    network = networks.small_cnn((8, 8, 1), width=4)
    size = trained.trainable_size(network)
    assert size == 9 * (4 + 32) + 128 * 16 + 2 * 28
    for name in ("conv1_bn", "conv2_bn", "dense_bn"):
        layer = network.get_layer(name)
        assert (layer.momentum, layer.epsilon) == (0.9, 1e-5)
    trained.assert_serialises(network)


def test_mlp_by_hand():
    network = networks.mlp((1, 1, 2), width=2)
    for layer in trained.layers(network, keras.layers.Dense):
        layer.kernel.assign([[1.0, 2.0], [3.0, -1.0]])
    for layer in trained.layers(network, networks.BatchNormalization):
        # Mean 0 and variance 1 - 1e-5, so that nothing changes.
        layer.moving_variance.assign(np.full(2, 1.0 - 1e-5))
    # (1, -1): (1 - 3, 2 + 1) = (-2, 3), ReLU (0, 3); (9, -3), ReLU (9, 0).
    result = network(np.array([[[[1.0, -1.0]]]]), training=False)
    np.testing.assert_allclose(result, [[9.0, 0.0]], rtol=1e-6)


def test_parameter_count_of_convnet9():
    network = networks.convnet9()
    filters = [3, 128, 128, 128, 256, 256, 256, 512, 256, 128]
    kernels = sum(9 * a * b for a, b in zip(filters[:-1], filters[1:]))
    norms = 2 * (3 * 128 + 3 * 256 + 512 + 256 + 128)
    count = trained.trainable_size(network)
    assert count == kernels + norms == 4_431_232
    # The original with its biases and a classifier of ten classes.
    assert count + norms // 2 + 128 * 10 + 10 == 4_434_570
    assert network.output_shape == (None, 128)


def test_convnet9_equals_the_loops():
    network = trained.made(networks.convnet9, (28, 28, 1), width=2)
    images = np.random.default_rng(1).standard_normal((1, 28, 28, 1))
    x = images
    # 28, pooled 14, pooled 7, then 5, 3 and 1 without padding.
    for number, side in enumerate([28, 28, 28, 14, 14, 14, 5, 3, 1], start=1):
        kernel = network.get_layer(f"conv{number}").kernel.numpy()
        x = references.convolve(x, kernel, 1, 1 if number <= 6 else 0)
        x = trained.normalised(network, x, f"conv{number}_bn")
        x = np.where(x > 0, x, 0.01 * x)
        assert x.shape[1:3] == (side, side)
        if number in (3, 6):
            parts = x.reshape(1, side // 2, 2, side // 2, 2, -1)
            x = parts.max(axis=(2, 4))
    # Testing has no dropout: nothing is random.
    trained.assert_features(network, images, x)


def test_dropout_drops_whole_channels_in_training_only():
    layer = networks.ChannelDropout(0.25, seed=7)
    images = np.arange(1.0, 1 + 5 * 6 * 6 * 40).reshape(5, 6, 6, 40)
    images = images.astype("float32")
    results = [np.asarray(layer(images, training=True)) for _ in range(2)]
    for result in results:
        kept = result[:, :1, :1] != 0
        np.testing.assert_allclose(result, images * kept / 0.75, rtol=1e-6)
        # Five deviations around 50 of 200: sqrt(200 * 0.1875) = 6.1.
        assert 19 < (~kept).sum() < 81
    assert (results[0] != results[1]).any()
    for training in (False, None):
        np.testing.assert_array_equal(layer(images, training=training), images)


def with_dropout():
    inputs = keras.Input(tiny.SHAPE)
    x = keras.layers.Conv2D(6, 1)(inputs)
    x = networks.ChannelDropout(0.5)(x)
    x = networks.ChannelDropout(0.0)(x)
    x = keras.layers.Flatten()(x)
    return keras.Model(inputs, keras.layers.Dense(5)(x))


def test_a_saved_model_with_dropout_goes_on_bit_for_bit(tmp_path):
    images, candidates, _ = tiny.examples()
    data = tiny.batches(images, candidates, 8)
    whole, part = (tiny.pico(network=with_dropout) for _ in range(2))
    tiny.fit(whole, data, epochs=3)
    tiny.fit(part, data, epochs=1)
    path = str(tmp_path / "model.keras")
    part.save(path)
    part = keras.models.load_model(path)
    tiny.fit(part, data, epochs=3, initial_epoch=1)
    tiny.assert_same(tiny.snapshot(whole), tiny.snapshot(part))


def test_parameter_counts_of_the_heads():
    assert trained.trainable_size(networks.classifier_head(512, 10)) == 5_130
    # 512 x 512 + 512, and 512 x 128 + 128.
    head = networks.projection_head(512, 128)
    assert trained.trainable_size(head) == 262_656 + 65_664


@pytest.mark.parametrize("fan_in", [64, 512])
def test_heads_start_as_pytorchs_linear(fan_in):
    keras.utils.set_random_seed(0)
    bound = 1 / np.sqrt(fan_in)
    first, second = networks.projection_head(fan_in, 100).layers
    for layer in (networks.classifier_head(fan_in, 100), first, second):
        for weight in (layer.kernel.numpy(), layer.bias.numpy()):
            # Uniform on [-b, b]: b / sqrt 3; the error of a standard
            # deviation is at most 0.32 / sqrt(n) of it.
            assert np.abs(weight).max() <= bound
            assert np.abs(weight).max() > 0.9 * bound
            error = 4 * 0.32 / np.sqrt(weight.size)
            spread = weight.std() * np.sqrt(3) / bound
            assert abs(spread - 1) < max(error, 0.02)
    one, two = networks.projection_head(16, 16).layers
    assert np.abs(one.kernel - two.kernel).max() > 0.01


def test_heads_return_float32_under_mixed_precision():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        classifier = networks.classifier_head(4, 3)
        projection = networks.projection_head(4, 3)
    finally:
        keras.config.set_dtype_policy(policy)
    x = np.ones((2, 4), "float16")
    for head in (classifier, projection):
        assert keras.backend.standardize_dtype(head(x).dtype) == "float32"
