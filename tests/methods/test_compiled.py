"""Steps compiled in other ways, mixed precision, weight decay."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

import alim_keras


def _ten_steps(**options):
    """Three epochs of ten steps, with a warm-up of one."""
    images, candidates, _ = tiny.examples(40, seed=2)
    model = tiny.pico(40, compile_options=options, learning_rate=0.05)
    history = tiny.fit(
        model,
        tiny.batches(images, candidates, 4),
        epochs=3,
        callbacks=[alim_keras.callbacks.ALIM(noise_rate=0.5, warmup_epochs=1)],
    )
    return history, tiny.snapshot(model), int(model.optimizer.iterations)


@pytest.fixture(scope="module")
def one_by_one():
    return _ten_steps(steps_per_execution=1, jit_compile=False)


@pytest.mark.parametrize(
    ("options", "atol"),
    [
        ({"steps_per_execution": 4}, 1e-6),  # 4, 4, 2: case 50.
        ({"jit_compile": True}, 1e-4),
    ],
)
def test_steps_compiled_otherwise_are_the_same(one_by_one, options, atol):
    history, variables, iterations = _ten_steps(**options)
    assert iterations == one_by_one[2] == 30
    assert set(history) == set(one_by_one[0])
    for name, values in one_by_one[0].items():
        np.testing.assert_allclose(history[name], values, atol=atol)
    tiny.assert_same(one_by_one[1], variables, atol=10 * atol)


def test_mixed_precision_trains():
    # Case 43.
    x, y = tiny.batch(12)
    options = {"batch_norm": True, "learning_rate": 0.05}
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = tiny.pico(**options)
        assert model.backbone.layers[-1].compute_dtype == "float16"
    finally:
        keras.config.set_dtype_policy(policy)
    full = tiny.pico(**options)
    for one in (model, full):
        one.pseudo_label_table.use_onehot.assign(0.0)
        one.pseudo_label_table.scale_factor.assign(0.1)
        one.pseudo_label_table.momentum.assign(0.9)
    before = [v.numpy() for v in model.trainable_variables]
    losses = [
        [one.train_on_batch(x, y, return_dict=True)["loss"] for _ in range(12)]
        for one in (model, full)
    ]
    assert np.all(np.isfinite(losses))
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.02)
    # No run of skipped steps: every variable has moved.
    for old, new in zip(before, model.trainable_variables):
        assert np.abs(old - new.numpy()).max() > 1e-5, new.path
    for variable in (
        model.pseudo_labels,
        model.prototypes.means,
        model.queue.embeddings,
        model.pseudo_label_table.lam,
    ):
        assert variable.dtype == "float32"
    assert model.predict(x["image"], verbose=0).dtype == np.float32


# Weight decay.


def test_weight_decay_is_coupled():
    # Case 66. 1,000 steps without a gradient, lr .01, momentum .9, wd 1e-3:
    # v <- .9 v + .001 w, w <- w - .01 v ends at .906 (Keras's own: .990).
    def network():
        return tiny.backbone(batch_norm=True)

    model = tiny.plain(
        network,
        count=4,
        learning_rate=0.01,
        weight_decay=1e-3,
        compile_options={"jit_compile": False},
    )
    for variable in model.trainable_variables:
        variable.assign(np.ones(variable.shape))
    images, candidates, _ = tiny.examples(4)
    x = {"image": images, "index": np.arange(4)}
    weight = np.zeros(4, "float32")
    one = tf.data.Dataset.from_tensors((x, candidates, weight))
    tiny.fit(model, one.repeat(1000))
    w, v = 1.0, 0.0
    for _ in range(1000):
        v = 0.9 * v + 1e-3 * w
        w = w - 0.01 * v
    assert w == pytest.approx(0.906, abs=1e-3)
    # Kernels, biases, gamma, beta; two of each.
    assert len(model.trainable_variables) == 6
    for variable in model.trainable_variables:
        np.testing.assert_allclose(variable.numpy(), w, atol=1e-4)


def test_weight_decay_leaves_the_key_encoder_alone():
    x, y = tiny.batch()
    model = tiny.pico(weight_decay=0.5, key_momentum=1.0)
    before = model.key_encoder.get_weights()
    model.train_on_batch(x, y, sample_weight=np.zeros(6, "float32"))
    for old, new in zip(before, model.key_encoder.get_weights()):
        np.testing.assert_array_equal(old, new)


def test_regularisers_of_layers_count():
    def network():
        inputs = keras.Input((1, 1, 2))
        x = keras.layers.Flatten()(inputs)
        x = keras.layers.Dense(
            2, kernel_regularizer=keras.regularizers.L2(0.1), use_bias=False
        )(x)
        return keras.Model(inputs, x)

    model = tiny.plain(network, count=2, learning_rate=0.5)
    kernel = model.backbone.layers[-1].kernel
    before = kernel.numpy()
    x = {"image": np.ones((2, 1, 1, 2), "uint8"), "index": np.arange(2)}
    y = np.eye(3, dtype="float32")[:2]
    model.train_on_batch(x, y, sample_weight=np.zeros(2, "float32"))
    # w - lr 2 (.1) w
    np.testing.assert_allclose(kernel.numpy(), 0.9 * before, rtol=1e-5)
