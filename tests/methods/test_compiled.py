"""Steps compiled in other ways, mixed precision, weight decay."""

import keras
import numpy as np
import pytest
import tiny

import alim_keras


def _ten_steps(**options):
    """Three epochs of ten steps, with a warm-up of one."""
    images, candidates, _ = tiny.examples(40, seed=2)
    model = tiny.pico(40, compile_options=options, learning_rate=0.05)
    alim = alim_keras.callbacks.ALIM(noise_rate=0.5, warmup_epochs=1)
    data = tiny.batches(images, candidates, 4)
    history = tiny.fit(model, data, epochs=3, callbacks=[alim])
    return history, tiny.snapshot(model), int(model.optimizer.iterations)


def test_steps_compiled_otherwise_are_the_same():
    first = _ten_steps(steps_per_execution=1, jit_compile=False)
    for options, atol in (
        ({"steps_per_execution": 4}, 1e-6),  # 4, 4, 2: case 50.
        ({"jit_compile": True}, 1e-4),
    ):
        history, variables, iterations = _ten_steps(**options)
        assert iterations == first[2] == 30
        assert set(history) == set(first[0])
        for name, values in first[0].items():
            np.testing.assert_allclose(history[name], values, atol=atol)
        tiny.assert_same(first[1], variables, atol=10 * atol)


def test_a_step_is_traced_once():
    images, candidates, _ = tiny.examples(24, seed=2)
    views = alim_keras.augment.Views(seed=3, num_operations=1)
    model = tiny.pico(24, compile_options={"run_eagerly": False}, views=views)
    traces, lams = [], []
    original = model.training_loss

    def counted(*arguments):
        traces.append(1)
        return original(*arguments)

    model.training_loss = counted
    alim = alim_keras.callbacks.ALIM(noise_rate=0.1, warmup_epochs=2)
    data = tiny.batches(images, candidates, 8)
    for start in (0, 3):
        history = tiny.fit(
            model, data, epochs=start + 3, initial_epoch=start, callbacks=[alim]
        )
        lams += history["lambda"]
    # Epoch, momentum and lambda changed; the code of the step did not.
    assert int(model.optimizer.iterations) == 18
    assert len(set(lams)) > 3
    assert len(traces) == 1


# Mixed precision (case 43).

ONE_IS_ENOUGH = pytest.mark.tensorflow("on JAX bfloat16 is enough")
HALVES = ["bfloat16", pytest.param("float16", marks=ONE_IS_ENOUGH)]


@pytest.fixture
def policy():
    """A function that sets the global policy; it is set back afterwards."""
    before = keras.config.dtype_policy()
    yield keras.config.set_dtype_policy
    keras.config.set_dtype_policy(before)


def _assert_float32(model, x, y):
    """Raises unless all that counts is float32 whatever the policy."""
    weak = model.prepare(x["image"])
    outputs = model.encode(weak, training=True)
    scores = model.scores(outputs)
    table = model.pseudo_label_table
    targets = table.refresh(x["index"], scores, y)
    loss, probabilities, _ = model.training_loss(x, y)
    tensors = [weak, *outputs.values(), scores, targets, loss, probabilities]
    tensors += [v for v in model.variables if "float" in v.dtype]
    dtypes = {keras.backend.standardize_dtype(x.dtype) for x in tensors}
    assert dtypes == {"float32"}
    # The key encoder is in there, too.
    assert len(model.key_encoder.variables) == 10
    assert model.predict(x["image"], verbose=0).dtype == np.float32


@pytest.mark.parametrize("half", HALVES)
def test_mixed_precision_trains_as_float32_does(policy, half):
    x, y = tiny.batch(12)
    views = alim_keras.augment.Views(seed=3, num_operations=1)
    options = {"batch_norm": True, "learning_rate": 0.05, "views": views}
    full = tiny.pico(**options)
    policy(f"mixed_{half}")
    model = tiny.pico(compile_options={"run_eagerly": False}, **options)
    assert model.backbone.layers[-1].compute_dtype == half
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
    rows = model.pseudo_labels.numpy()[:12]
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-5)
    model.views = None
    _assert_float32(model, x, y)


def test_a_step_whose_gradient_overflows_changes_no_weight(policy):
    policy("mixed_float16")
    model = tiny.pico(batch_norm=True, learning_rate=0.05)
    x, y = tiny.batch(12)
    model.train_on_batch(x, y)
    scale = model.optimizer.dynamic_scale
    scale.assign(1e30)
    trained = [v.numpy() for v in model.trainable_variables]
    momenta = [v.numpy() for v in model.optimizer.inner_optimizer.variables]
    logs = model.train_on_batch(x, y, return_dict=True)
    inner = model.optimizer.inner_optimizer.variables
    kept = [*model.trainable_variables, *inner]
    for old, new in zip([*trained, *momenta], kept, strict=True):
        np.testing.assert_array_equal(old, new.numpy())
    assert float(scale.numpy()) == pytest.approx(5e29)
    # The forward pass was sound, and so is all that comes from it.
    assert np.all(np.isfinite(list(logs.values())))
    for variable in model.non_trainable_variables:
        if not variable.path.endswith("candidate_ratio"):
            assert np.all(np.isfinite(variable.numpy())), variable.path
    # With a scale that fits, training goes on.
    scale.assign(1024.0)
    model.train_on_batch(x, y)
    for old, new in zip(trained, model.trainable_variables):
        assert np.abs(old - new.numpy()).max() > 1e-6, new.path
        assert np.all(np.isfinite(new.numpy()))


def test_mixed_precision_normalises_before_it_rounds(policy):
    # 200.6 is 201 in bfloat16, and (200.6 / 255 - .5) / .25 = 1.1466667 would
    # become 1.15625 after two more roundings.
    policy("mixed_bfloat16")
    model = tiny.pico(mean=0.5, std=0.25)
    images = np.full((2, *tiny.SHAPE), 200.6, "float32")
    np.testing.assert_allclose(model.prepare(images), 1.1466667, rtol=1e-6)
    seen = []
    encode = model.encode
    model.encode = lambda x, training: seen.append(x) or encode(x, training)
    model(images)
    np.testing.assert_allclose(seen[0], 1.1466667, rtol=1e-6)


# Weight decay.


def test_weight_decay_is_coupled():
    # Case 66: without a gradient v <- .9 v + wd w, w <- w - lr v.
    model = tiny.plain(lambda: tiny.backbone(batch_norm=True), weight_decay=0.1)
    for variable in model.trainable_variables:
        variable.assign(np.ones(variable.shape))
    x, y = tiny.batch(4)
    w, v = 1.0, 0.0
    for _ in range(5):
        model.train_on_batch(x, y, sample_weight=np.zeros(4, "float32"))
        v = 0.9 * v + 0.1 * w
        w = w - 0.1 * v
    # Kernels, biases, gamma, beta; two of each.
    assert len(model.trainable_variables) == 6
    for variable in model.trainable_variables:
        np.testing.assert_allclose(variable.numpy(), w, rtol=1e-5)


def test_regularisers_of_layers_count():
    def network():
        options = {"kernel_regularizer": keras.regularizers.L2(0.1)}
        dense = keras.layers.Dense(2, use_bias=False, **options)
        return keras.Sequential([tiny.flat((1, 1, 2)), dense])

    model = tiny.plain(network, count=2, learning_rate=0.5)
    kernel = model.backbone.layers[-1].kernel
    before = kernel.numpy()
    x = {"image": np.ones((2, 1, 1, 2), "uint8"), "index": np.arange(2)}
    y = np.eye(3, dtype="float32")[:2]
    model.train_on_batch(x, y, sample_weight=np.zeros(2, "float32"))
    # w - lr 2 (.1) w
    np.testing.assert_allclose(kernel.numpy(), 0.9 * before, rtol=1e-5)
