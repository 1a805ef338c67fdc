"""The nine-layer network of the simple baselines, and its dropout."""

import keras
import numpy as np
import pytest
import references
import tiny

from alim_keras import draws
from alim_keras import networks
from alim_keras.errors import ConfigError


def test_parameter_count():
    network = networks.convnet9()
    filters = [3, 128, 128, 128, 256, 256, 256, 512, 256, 128]
    kernels = sum(9 * a * b for a, b in zip(filters[:-1], filters[1:]))
    # 3456 + 2 x 147456 + 294912 + 2 x 589824 + 1179648 + 1179648 + 294912
    assert kernels == 4_427_136
    norms = 2 * (3 * 128 + 3 * 256 + 512 + 256 + 128)
    assert norms == 4_096
    count = sum(int(np.prod(v.shape)) for v in network.trainable_variables)
    assert count == kernels + norms == 4_431_232
    # The original with its biases and a classifier of ten classes.
    assert count + norms // 2 + 128 * 10 + 10 == 4_434_570
    assert network.output_shape == (None, 128)


def test_the_whole_network_equals_the_loops():
    keras.utils.set_random_seed(0)
    network = networks.convnet9((28, 28, 1), width=2)
    stream = np.random.default_rng(0)
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            size = layer.gamma.shape
            layer.gamma.assign(stream.uniform(0.5, 1.5, size))
            layer.beta.assign(stream.uniform(-0.5, 0.5, size))
            layer.moving_mean.assign(stream.uniform(-0.5, 0.5, size))
            layer.moving_variance.assign(stream.uniform(0.5, 2.0, size))
    images = stream.standard_normal((1, 28, 28, 1))
    x = images
    # 28, pooled 14, pooled 7, then 5, 3 and 1 without padding.
    for number, side in enumerate([28, 28, 28, 14, 14, 14, 5, 3, 1], start=1):
        kernel = network.get_layer(f"conv{number}").kernel.numpy()
        x = references.convolve(x, kernel, 1, 1 if number <= 6 else 0)
        weights = network.get_layer(f"conv{number}_bn").weights
        gamma, beta, mean, variance = [w.numpy() for w in weights]
        x = gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta
        x = np.where(x > 0, x, 0.01 * x)
        assert x.shape[1:3] == (side, side)
        if number in (3, 6):
            parts = x.reshape(1, side // 2, 2, side // 2, 2, -1)
            x = parts.max(axis=(2, 4))
    result = network(images.astype("float32"), training=False)
    np.testing.assert_allclose(result, x.mean(axis=(1, 2)), atol=1e-4)
    # Testing has no dropout: nothing is random.
    again = network(images.astype("float32"), training=False)
    np.testing.assert_array_equal(again, result)


def test_too_small_images_are_refused():
    with pytest.raises(ConfigError, match=r"28x28.*\(8, 8, 1\)"):
        networks.convnet9((8, 8, 1))


def test_dropout_drops_whole_channels_by_seed_call_and_place():
    layer = networks.ChannelDropout(0.25, seed=7)
    images = np.arange(1.0, 1 + 5 * 6 * 6 * 40).reshape(5, 6, 6, 40)
    images = images.astype("float32")
    for call in range(2):
        result = keras.ops.convert_to_numpy(layer(images, training=True))
        drawn = draws.uniform(7, call, np.arange(5), 40, "channel_dropout")
        kept = keras.ops.convert_to_numpy(drawn) >= 0.25
        expected = images * kept[:, None, None, :] / 0.75
        np.testing.assert_allclose(result, expected, rtol=1e-6)
        # Five deviations around 50 of 200: sqrt(200 * 0.1875) = 6.1.
        assert 19 < (~kept).sum() < 81
    assert layer.state.numpy().tolist() == [7, 2]
    for training in (False, None):
        np.testing.assert_array_equal(layer(images, training=training), images)
    assert layer.state.numpy().tolist() == [7, 2]


def test_dropout_seeds_follow_keras_seed():
    def seeds():
        keras.utils.set_random_seed(3)
        network = networks.convnet9((28, 28, 1), width=2)
        layers = [network.get_layer(f"dropout{n}") for n in (1, 2)]
        return [layer.state.numpy().tolist() for layer in layers]

    first = seeds()
    assert first == seeds()
    assert first[0] != first[1]
    assert first[0][1] == first[1][1] == 0


def test_bad_rate_is_named():
    with pytest.raises(ValueError, match="rate=1"):
        networks.ChannelDropout(1)


def network():
    inputs = keras.Input(tiny.SHAPE)
    x = keras.layers.Conv2D(6, 1)(inputs)
    x = networks.ChannelDropout(0.5)(x)
    x = keras.layers.Flatten()(x)
    return keras.Model(inputs, keras.layers.Dense(5)(x))


def test_a_saved_model_goes_on_bit_for_bit(tmp_path):
    images, candidates, _ = tiny.examples()
    data = tiny.batches(images, candidates, 8)
    whole, part = (tiny.pico(network=network) for _ in range(2))
    tiny.fit(whole, data, epochs=3)
    tiny.fit(part, data, epochs=1)
    path = str(tmp_path / "model.keras")
    part.save(path)
    part = keras.models.load_model(path)
    tiny.fit(part, data, epochs=3, initial_epoch=1)
    tiny.assert_same(tiny.snapshot(whole), tiny.snapshot(part))
    # Three epochs of three batches: the query encoder sees each batch and its
    # mixture, the key encoder each batch.
    calls = [
        part.backbone.layers[2].state.numpy()[1],
        part.key_encoder.layers[0].layers[2].state.numpy()[1],
    ]
    assert calls == [18, 9]
