"""What every method shares: step, logs, inputs, weight decay, saving."""

import warnings

import keras
import numpy as np
import pytest
import references
import tensorflow as tf
import tiny

import alim_keras
from alim_keras.methods import checks

PARTS = ("cls_loss", "cont_loss", "mix_loss")


@pytest.fixture(scope="module")
def data():
    images, candidates, labels = tiny.examples(24)
    return images, candidates, labels


def batch(data, size=6):
    images, candidates, _ = data
    return {"image": images[:size], "index": np.arange(size)}, candidates[:size]


def features(data):
    images, candidates, _ = data
    return {"image": images, "index": np.arange(len(images))}, candidates


# Keras asks a variable for an array in a way that NumPy 2 warns about.
SAVING_NOISE = pytest.mark.filterwarnings("ignore:__array__ implementation")


class Plain(alim_keras.PartialLabelModel):
    """The base class used as it is: a classifier and its table."""


def plain(
    network, count=24, learning_rate=0.1, compile_options=None, **options
):
    keras.utils.set_random_seed(1)
    model = Plain(network(), tiny.CLASSES, count, **options)
    model.compile(
        optimizer=keras.optimizers.SGD(learning_rate, momentum=0.9),
        metrics=[alim_keras.metrics.CandidateAccuracy()],
        **(compile_options or {"run_eagerly": True}),
    )
    return model


# Logs.


def test_history_is_the_mean_over_examples(data):
    # Case 40. Batches of 7, 7, 7, 3: the mean weighs them by size.
    x, y = features(data)
    first, second = tiny.pico(), tiny.pico()
    history = tiny.fit(first, x, y=y, batch_size=7)
    sizes, logs = [], []
    second.pseudo_label_table.momentum.assign(0.95)
    for start in range(0, 24, 7):
        part = slice(start, start + 7)
        some = {name: value[part] for name, value in x.items()}
        logs.append(second.train_on_batch(some, y[part], return_dict=True))
        sizes.append(len(y[part]))
    assert sizes == [7, 7, 7, 3]
    for name in ("loss", *PARTS, "accuracy", "outside"):
        expected = np.average([log[name] for log in logs], weights=sizes)
        assert history[name][0] == pytest.approx(expected, abs=1e-5), name
    tiny.assert_same(tiny.snapshot(first), tiny.snapshot(second))


def test_logs_start_anew_in_each_epoch(data):
    images, candidates, _ = data
    model = plain(tiny.backbone, learning_rate=0.0, mixup_weight=1.0)
    model.pseudo_label_momentum = (1.0, 1.0)
    history = tiny.fit(model, tiny.batches(images, candidates, 6), epochs=3)
    # Nothing learns, so the classifier's loss stays what it was.
    np.testing.assert_allclose(history["cls_loss"], history["cls_loss"][0])
    assert history["cls_loss"][0] > 0.1


def test_the_loss_is_the_weighted_sum_of_its_parts(data):
    model = tiny.pico(contrastive_weight=0.25, mixup_weight=2.0)
    logs = model.train_on_batch(*batch(data), return_dict=True)
    expected = logs["cls_loss"] + 0.25 * logs["cont_loss"]
    expected += 2.0 * logs["mix_loss"]
    assert logs["loss"] == pytest.approx(expected, rel=1e-6)


def test_validation_logs_hold_no_training_parts(data):
    images, candidates, labels = data
    model = tiny.pico()
    history = tiny.fit(
        model,
        tiny.batches(images, candidates, 6),
        validation_data=alim_keras.data.eval_dataset(images, labels, 3, 5),
    )
    assert set(history) == {
        "loss",
        *PARTS,
        "accuracy",
        "outside",
        "val_loss",
        "val_accuracy",
    }


@pytest.mark.parametrize("kind", ["sets", "labels"])
def test_evaluation_is_the_candidate_crossentropy(data, kind):
    images, candidates, labels = data
    model = tiny.pico()
    y = candidates if kind == "sets" else np.eye(3, dtype="float32")[labels]
    logs = model.evaluate(images, y, batch_size=7, verbose=0, return_dict=True)
    p = model.predict(images, verbose=0)
    expected = references.candidate_crossentropy(y, p).mean()
    assert set(logs) == {"loss", "accuracy"}
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)
    expected = references.covering(y, p).mean()
    assert logs["accuracy"] == pytest.approx(expected)


def test_evaluation_changes_nothing(data):
    images, candidates, _ = data
    model = tiny.pico(batch_norm=True)
    x, y = batch(data)
    model.train_on_batch(x, y)
    before = tiny.snapshot(model)
    model.evaluate(images, candidates, verbose=0)
    model.test_on_batch(x, y)
    model.predict(images, verbose=0)
    tiny.assert_same(before, tiny.snapshot(model))


def test_accuracy_is_taken_on_unmixed_views():
    # Case 27: a perfect model whose mixed batch holds three classes at once.
    labels = np.array([0, 1, 2, 0, 2, 1])
    images = np.zeros((6, 1, 1, 3), "uint8")
    images[np.arange(6), 0, 0, labels] = 255

    def network():
        inputs = keras.Input((1, 1, 3))
        return keras.Model(inputs, keras.layers.Flatten()(inputs))

    model = plain(network, count=6, learning_rate=0.0, mixup_weight=1.0)
    model.classifier.set_weights([10 * np.eye(3), np.zeros(3)])
    x = {"image": images, "index": np.arange(6)}
    y = np.eye(3, dtype="float32")[labels]
    logs = model.train_on_batch(x, y, return_dict=True)
    assert logs["accuracy"] == 1.0 and logs["mix_loss"] > logs["cls_loss"]


def test_outside_counts_labels_that_left_their_set(data):
    images, candidates, _ = data
    model = tiny.pico()
    model.pseudo_label_table.lam.assign(1.0)
    logs = model.train_on_batch(*batch(data, 12), return_dict=True)
    rows = model.pseudo_labels.numpy()[:12]
    inside = candidates[np.arange(12), rows.argmax(axis=1)]
    assert logs["outside"] == pytest.approx(1.0 - inside.mean())
    assert logs["outside"] > 0.1


def test_a_base_model_learns_the_table_by_itself(data):
    x, y = batch(data, 4)
    model = plain(tiny.backbone)
    model.pseudo_label_table.momentum.assign(0.5)
    p = model.predict(x["image"], verbose=0)
    logits = np.log(p)
    logs = model.train_on_batch(x, y, return_dict=True)
    rows = 0.5 * y / y.sum(axis=1, keepdims=True)
    rows = rows + 0.5 * references.pseudo_labels(p, y, 0.0, "onehot")
    np.testing.assert_allclose(model.pseudo_labels.numpy()[:4], rows, atol=1e-6)
    expected = references.cross_entropy(rows, logits).mean()
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)
    assert logs["cls_loss"] == pytest.approx(expected, rel=1e-5)


def test_the_step_of_the_first_non_finite_loss_is_kept(data):
    x, y = batch(data)
    model = tiny.pico()
    model.train_on_batch(x, y)
    np.testing.assert_array_equal(model.non_finite_step.numpy(), -1)
    bad = {"image": np.full((6, 4, 4, 1), np.nan, "float32"), **x}
    bad["image"] = np.full((6, 4, 4, 1), np.nan, "float32")
    model.train_on_batch(bad, y)
    model.train_on_batch(x, y)
    # Counted from 0: the second step. All three parts, in their order.
    assert model.loss_names == ("cls", "cont", "mix")
    np.testing.assert_array_equal(model.non_finite_step.numpy(), 1)


def test_only_the_part_that_broke_is_named(data):
    x, y = batch(data)
    strong = np.full((6, 4, 4, 1), np.inf, "float32")
    model = tiny.pico()
    model.train_on_batch(
        {"weak": x["image"], "strong": strong, "index": x["index"]}, y
    )
    np.testing.assert_array_equal(model.non_finite_step.numpy(), [-1, 0, -1])


# Inputs.


class Batches(keras.utils.PyDataset):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def __len__(self):
        return 4

    def __getitem__(self, step):
        part = slice(6 * step, 6 * step + 6)
        return {k: v[part] for k, v in self.x.items()}, self.y[part]


def test_every_kind_of_input_trains_alike(data):
    x, y = features(data)
    source = Batches(x, y)

    def generator():
        while True:
            for step in range(4):
                yield source[step]

    def arrays():
        return {"x": x, "y": y, "batch_size": 6}

    kinds = {
        "arrays": arrays,
        "PyDataset": lambda: {"x": source},
        "generator": lambda: {"x": generator(), "steps_per_epoch": 4},
        "tf.data": lambda: {
            "x": tf.data.Dataset.from_tensor_slices((x, y)).batch(6)
        },
    }
    results = {}
    for name, arguments in kinds.items():
        model = plain(tiny.backbone, mixup_weight=1.0)
        arguments = arguments()
        tiny.fit(model, arguments.pop("x"), **arguments)
        results[name] = tiny.snapshot(model)
    for name in kinds:
        tiny.assert_same(results["arrays"], results[name])


def test_batches_with_sample_weights(data):
    x, y = features(data)
    weight = np.linspace(0.0, 2.0, 24).astype("float32")
    first, second, third = (plain(tiny.backbone) for _ in range(3))
    tiny.fit(first, x, y=y, sample_weight=weight, batch_size=6)
    triples = tf.data.Dataset.from_tensor_slices((x, y, weight)).batch(6)
    tiny.fit(second, triples)
    tiny.assert_same(tiny.snapshot(first), tiny.snapshot(second))
    tiny.fit(third, x, y=y, batch_size=6)
    kernel = first.classifier.kernel.numpy()
    assert np.abs(kernel - third.classifier.kernel.numpy()).max() > 1e-4


def test_weight_zero_leaves_an_example_out_of_the_loss(data):
    # Case 41, without mixup and contrast: half the batch has weight 0, so
    # the sum is that of the other half, the divisor twice as large.
    x, y = batch(data, 8)
    options = {"count": 24, "learning_rate": 0.2}
    first = plain(tiny.backbone, **options)
    weight = np.repeat([1.0, 0.0], 4).astype("float32")
    first.train_on_batch(x, y, sample_weight=weight)
    second = plain(tiny.backbone, count=24, learning_rate=0.1)
    half = {name: value[:4] for name, value in x.items()}
    second.train_on_batch(half, y[:4])
    for a, b in zip(first.trainable_variables, second.trainable_variables):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-6)


def test_on_batch_methods(data):
    x, y = batch(data)
    model = tiny.pico()
    values = model.train_on_batch(x, y)
    assert np.all(np.isfinite(values)) and len(values) == 6
    weight = np.array([1, 0, 0, 0, 0, 0], "float32")
    logs = model.test_on_batch(x, y, sample_weight=weight, return_dict=True)
    p = model.predict_on_batch(x["image"])
    expected = references.candidate_crossentropy(y[:1], p[:1])[0] / 6
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)
    assert model.test_on_batch(x, y)[0] > 0.0


def test_the_first_epochs_momentum_holds_without_fit(data):
    # train_on_batch knows no epochs; phi is that of the first, .95.
    x, y = batch(data, 4)
    model = plain(tiny.backbone)
    p = model.predict(x["image"], verbose=0)
    model.train_on_batch(x, y)
    rows = 0.95 * y / y.sum(axis=1, keepdims=True)
    rows = rows + 0.05 * references.pseudo_labels(p, y, 0.0, "onehot")
    np.testing.assert_allclose(model.pseudo_labels.numpy()[:4], rows, atol=1e-6)


@pytest.mark.parametrize("how", ["fit", "train_on_batch"])
def test_class_weight_is_refused(data, how):
    # Case 42: Keras would take the weight of the first candidate.
    x, y = batch(data)
    model = tiny.pico()
    with pytest.raises(ValueError, match="class_weight.*sample_weight"):
        getattr(model, how)(x, y, class_weight={0: 1.0, 1: 10.0, 2: 100.0})


def test_a_batch_of_one_trains(data):
    x, y = batch(data, 1)
    model = tiny.pico()
    logs = model.train_on_batch(x, y, return_dict=True)
    assert all(np.isfinite(value) for value in logs.values())
    # Mixed with itself: the same image, so the same loss.
    assert logs["mix_loss"] == pytest.approx(logs["cls_loss"], rel=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_images_of_any_dtype_train_alike(data, dtype):
    # Case 44.
    x, y = batch(data)
    model = plain(tiny.backbone)
    expected = model.predict(x["image"], verbose=0)
    image = x["image"].astype(dtype)
    np.testing.assert_allclose(
        model.predict(image, verbose=0), expected, atol=1e-6
    )
    logs = model.train_on_batch({**x, "image": image}, y, return_dict=True)
    reference = plain(tiny.backbone).train_on_batch(x, y, return_dict=True)
    assert logs["loss"] == pytest.approx(reference["loss"], rel=1e-6)


def test_images_are_scaled_and_normalised_inside():
    def network():
        inputs = keras.Input((2, 2, 3))
        return keras.Model(inputs, keras.layers.Flatten()(inputs))

    mean, std = (0.5, 0.25, 0.0), (0.5, 0.25, 2.0)
    model = plain(network, mean=mean, std=std)
    images = np.zeros((1, 2, 2, 3), "uint8")
    images[..., 0], images[..., 1], images[..., 2] = 255, 51, 102
    # (1 - .5) / .5, (.2 - .25) / .25, .4 / 2
    np.testing.assert_allclose(
        model.prepare(images)[0, 1, 1], [1.0, -0.2, 0.2], atol=1e-6
    )


def test_images_of_another_size_are_resized():
    model = tiny.pico()
    p = model.predict(np.full((2, 9, 7, 1), 90, "uint8"), verbose=0)
    expected = model.predict(np.full((2, 4, 4, 1), 90, "uint8"), verbose=0)
    np.testing.assert_allclose(p, expected, atol=1e-6)


def test_predictions_are_probabilities(data):
    images, candidates, _ = data
    model = tiny.pico()
    p = model.predict(images, verbose=0)
    assert p.dtype == np.float32 and p.shape == (24, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-5)
    dataset = alim_keras.data.eval_dataset(images, candidates, 3, 5)
    np.testing.assert_allclose(model.predict(dataset, verbose=0), p, atol=1e-6)
    network = model.inference_network()
    np.testing.assert_allclose(network.predict(images, verbose=0), p, atol=1e-6)
    owned = {id(v) for v in model.backbone.variables}
    owned |= {id(v) for v in model.classifier.variables}
    assert {id(v) for v in network.variables} == owned


# Steps that are compiled in other ways.


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


def test_mixed_precision_trains(data):
    # Case 43.
    x, y = batch(data, 12)
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

    model = plain(
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


def test_weight_decay_leaves_the_key_encoder_alone(data):
    x, y = batch(data)
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

    model = plain(network, count=2, learning_rate=0.5)
    kernel = model.backbone.layers[-1].kernel
    before = kernel.numpy()
    x = {"image": np.ones((2, 1, 1, 2), "uint8"), "index": np.arange(2)}
    y = np.eye(3, dtype="float32")[:2]
    model.train_on_batch(x, y, sample_weight=np.zeros(2, "float32"))
    # w - lr 2 (.1) w
    np.testing.assert_allclose(kernel.numpy(), 0.9 * before, rtol=1e-5)


# The key encoder.


def test_the_key_encoder_starts_equal_to_the_query_encoder():
    model = tiny.pico(batch_norm=True)
    query = model.backbone.weights + model.projection.weights
    key = model.key_encoder.weights
    assert len(query) == len(key) == 10
    for q, k in zip(query, key):
        np.testing.assert_array_equal(q.numpy(), k.numpy())
        assert q is not k


def test_the_key_encoder_takes_no_gradient(data):
    model = tiny.pico(batch_norm=True)
    trained = {id(v) for v in model.trainable_variables}
    assert not trained & {id(v) for v in model.key_encoder.variables}
    assert len(trained) == 10
    model.train_on_batch(*batch(data))
    # A step count, a learning rate and one velocity for each.
    assert len(model.optimizer.variables) == 2 + 10


def test_key_batch_normalisation_is_in_training_mode(data):
    # Case 19, pitfall P3: its own batch statistics, moved by its own views.
    x, y = batch(data)
    stream = np.random.default_rng(0)
    strong = stream.uniform(0, 255, x["image"].shape).astype("float32")
    model = tiny.pico(batch_norm=True, key_momentum=1.0)
    body = model.key_encoder.layers[0]
    inner = keras.Model(body.inputs, body.layers[-2].output)
    hidden = inner.predict(model.prepare(strong), verbose=0)
    mean, variance = hidden.mean(axis=0), hidden.var(axis=0)
    model.train_on_batch(
        {"weak": x["image"], "strong": strong, "index": x["index"]}, y
    )
    norm = body.layers[-1]
    # Moving: .9 (start) + .1 (batch).
    np.testing.assert_allclose(norm.moving_mean.numpy(), 0.1 * mean, atol=1e-5)
    np.testing.assert_allclose(
        norm.moving_variance.numpy(), 0.9 + 0.1 * variance, atol=1e-5
    )
    # The keys are made with the batch's statistics.
    normalised = (hidden - mean) / np.sqrt(variance + 1e-5)
    keys = model.key_encoder.layers[1].predict(normalised, verbose=0)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    np.testing.assert_allclose(
        model.queue.embeddings.numpy()[-6:], keys, atol=1e-4
    )


def test_only_parameters_take_part_in_the_moving_average(data):
    x, y = batch(data)
    model = tiny.pico(batch_norm=True, key_momentum=0.0)
    model.train_on_batch(x, y)
    query = model.backbone.layers[-1].moving_mean.numpy()
    key = model.key_encoder.layers[0].layers[-1].moving_mean.numpy()
    # The query encoder has seen the mixed batch too, the key encoder not.
    assert np.abs(query - key).max() > 1e-4


def test_the_key_encoder_stays_frozen_through_trainable(data):
    x, y = batch(data)
    model = tiny.pico()
    count = len(model.trainable_variables)
    model.trainable = False
    model.trainable = True
    assert len(model.trainable_variables) == count


def test_a_frozen_backbone_trains_its_heads(data):
    x, y = batch(data)

    def network():
        frozen = tiny.backbone(batch_norm=True)
        frozen.trainable = False
        return frozen

    model = tiny.pico(network=network)
    assert len(model.trainable_variables) == 6
    before = model.backbone.get_weights()
    kernel = model.classifier.kernel.numpy()
    model.train_on_batch(x, y)
    for old, new in zip(before, model.backbone.get_weights()):
        np.testing.assert_array_equal(old, new)
    assert np.abs(kernel - model.classifier.kernel.numpy()).max() > 0


# Saving.


@SAVING_NOISE
def test_a_saved_model_goes_on_as_if_nothing_had_happened(data, tmp_path):
    images, candidates, _ = data

    def train(model, epochs, start):
        tiny.fit(
            model,
            tiny.batches(images, candidates, 12),
            epochs=epochs,
            initial_epoch=start,
            callbacks=[
                alim_keras.callbacks.ALIM(
                    norm="scale", noise_rate=0.4, warmup_epochs=1
                )
            ],
        )

    options = {"mean": (0.5,), "std": (0.2,), "weight_decay": 1e-3}
    options["views"] = alim_keras.augment.Views(seed=3)
    model = tiny.pico(batch_norm=True, **options)
    train(model, 2, 0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is alim_keras.PiCO
    tiny.assert_same(tiny.snapshot(model), tiny.snapshot(again))
    np.testing.assert_array_equal(
        model.predict(images, verbose=0), again.predict(images, verbose=0)
    )
    assert len(again.trainable_variables) == len(model.trainable_variables)
    again.run_eagerly = True
    train(model, 3, 2)
    train(again, 3, 2)
    tiny.assert_same(tiny.snapshot(model), tiny.snapshot(again))
    for a, b in zip(model.optimizer.variables, again.optimizer.variables):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@SAVING_NOISE
def test_weights_alone_hold_all_state(data, tmp_path):
    # Case 35: marker values through .weights.h5.
    model = tiny.pico()
    table = model.pseudo_label_table
    markers = [
        model.epoch,
        model.prototypes.means,
        model.queue.embeddings,
        model.queue.labels,
        *table.weights,
    ]
    for number, variable in enumerate(markers):
        variable.assign(np.full(variable.shape, number + 2))
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    again = tiny.pico()
    again.load_weights(path)
    tiny.assert_same(tiny.snapshot(model), tiny.snapshot(again))


@SAVING_NOISE
@pytest.mark.parametrize(
    "mean", [0.5, (0.5,), [0.5], np.array([0.5]), np.float32(0.5)]
)
def test_any_kind_of_mean_survives_saving(data, tmp_path, mean):
    model = tiny.pico(mean=mean)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    images = data[0][:3]
    np.testing.assert_array_equal(
        model.predict(images, verbose=0), again.predict(images, verbose=0)
    )


def test_every_option_survives_saving():
    options = {
        "embedding_dim": 3,
        "queue_size": 7,
        "key_momentum": 0.5,
        "prototype_momentum": 0.25,
        "temperature": 0.3,
        "prototype_temperature": 0.4,
        "scores_from": "classifier",
        "contrastive_weight": 0.6,
        "mixup_weight": 0.7,
        "mixup_alpha": 2.0,
        "mean": 0.1,
        "std": 0.9,
        "pseudo_label_momentum": (0.8, 0.7),
        "pseudo_label_start": 4,
        "weight_decay": 0.01,
        "seed": 11,
    }
    model = tiny.pico(**options)
    again = alim_keras.PiCO.from_config(model.get_config())
    for name, value in options.items():
        assert getattr(again, name) == value, name
    assert again.contrastive_loss.temperature == 0.3
    assert again.prototypes.momentum == 0.25
    assert model.get_config() == again.get_config()


# Epochs.


def test_the_epoch_reaches_the_model_and_its_data(data):
    images, candidates, _ = data
    model = plain(tiny.backbone)
    dataset = tiny.batches(images, candidates, 6)
    seen = []

    class Spy(keras.callbacks.Callback):
        def on_train_batch_begin(self, step, logs=None):
            table = self.model.pseudo_label_table
            seen.append(
                (int(self.model.epoch), round(float(table.momentum), 6))
            )

    tiny.fit(model, dataset, epochs=5, initial_epoch=2, callbacks=[Spy()])
    # phi = .95 - .15 e / 5 for e = 2, 3, 4.
    assert seen[::4] == [(2, 0.89), (3, 0.86), (4, 0.83)]
    assert len(seen) == 12


@pytest.mark.parametrize("kind", ["none", "one", "list", "CallbackList"])
def test_callbacks_of_any_form(data, kind):
    images, candidates, _ = data
    model = plain(tiny.backbone)
    mine = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: None
    )
    callbacks = {
        "none": None,
        "one": mine,
        "list": [mine],
        "CallbackList": keras.callbacks.CallbackList(
            [mine], add_history=True, model=model, epochs=2
        ),
    }[kind]
    tiny.fit(
        model,
        tiny.batches(images, candidates, 12),
        epochs=2,
        callbacks=callbacks,
    )
    assert int(model.epoch) == 1
    assert float(model.pseudo_label_table.momentum) == pytest.approx(0.875)


def test_fit_on_the_own_data_set_says_nothing(data):
    images, candidates, _ = data
    model = plain(tiny.backbone)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(tiny.batches(images, candidates, 6), verbose=0)


# Mixup.


def test_mixup_partners_are_neighbours():
    partner = keras.ops.convert_to_numpy(tiny.pico().mixup_partner(6))
    np.testing.assert_array_equal(partner, [1, 0, 3, 2, 5, 4])


def test_the_last_of_an_odd_batch_has_a_partner_too():
    partner = keras.ops.convert_to_numpy(tiny.pico().mixup_partner(5))
    np.testing.assert_array_equal(partner[:4], [1, 0, 3, 2])
    assert 0 <= partner[4] < 5


def test_mixup_changes_with_the_epoch_but_not_with_the_order(data):
    x, y = batch(data)

    def mix(epoch, order):
        model = plain(tiny.backbone, learning_rate=0.0, mixup_weight=1.0)
        model.epoch.assign(epoch)
        some = {name: value[order] for name, value in x.items()}
        return model.train_on_batch(some, y[order], return_dict=True)

    first = mix(0, np.arange(6))["mix_loss"]
    assert abs(first - mix(1, np.arange(6))["mix_loss"]) > 1e-5
    # The same pairs in another order.
    again = mix(0, np.array([4, 5, 0, 1, 2, 3]))["mix_loss"]
    assert again == pytest.approx(first, rel=1e-6)


# Errors, by name (case 45).


def test_the_form_of_a_batch_is_checked():
    image, index = np.zeros((2, 4, 4, 1)), np.arange(2)
    y = np.ones((2, 3), "float32")
    both = {"image": image, "index": index}
    for x, candidates, words in [
        (image, y, "'index'"),
        ({"image": image}, y, r"x=\['image'\]"),
        ({"index": index}, y, r"x\['image'\]"),
        (both, None, "y=None"),
        (both, np.array([0, 1]), r"y.shape=\(2,\)"),
        (both, np.ones((2, 4)), r"y.shape=\(2, 4\)"),
        (both, [[1, 0, 0]], "type list"),
        (both, tf.ragged.constant([[0], [1, 2]]), "RaggedTensor"),
    ]:
        with pytest.raises(ValueError, match=words):
            checks.check_batch(x, candidates, 3)
    checks.check_batch(both, y, 3)


def test_a_lone_weak_view_is_named(data):
    x, y = batch(data)
    lone = {"weak": x["image"], "image": x["image"], "index": x["index"]}
    with pytest.raises(ValueError, match="strong"):
        tiny.pico().train_on_batch(lone, y)


@pytest.mark.parametrize("kind", ["no shape", "feature map", "open size"])
def test_the_form_of_the_backbone_is_checked(kind):
    if kind == "no shape":
        network, words = keras.Sequential([keras.layers.Dense(2)]), "Input"
    elif kind == "feature map":
        inputs = keras.Input((4, 4, 1))
        network = keras.Model(inputs, keras.layers.Conv2D(2, 3)(inputs))
        words = r"output_shape=\(None, 2, 2, 2\)"
    else:
        inputs = keras.Input((None, None, 1))
        x = keras.layers.GlobalAveragePooling2D()(inputs)
        network = keras.Model(inputs, x)
        words = r"input_shape=\(None, None, None, 1\)"
    with pytest.raises(ValueError, match=words):
        alim_keras.PiCO(network, 3, 4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scores_from", "nearest"),
        ("temperature", 0.0),
        ("std", 0.0),
        ("mean", float("nan")),
        ("mixup_alpha", 0.0),
        ("prototype_temperature", 0.0),
        ("queue_size", 0),
        ("key_momentum", 1.5),
        ("prototype_momentum", -0.1),
        ("mixup_weight", -1.0),
        ("contrastive_weight", float("nan")),
        ("weight_decay", -1.0),
        ("pseudo_label_momentum", (0.9, 1.2)),
    ],
)
def test_an_argument_out_of_range_is_named(name, value):
    with pytest.raises(ValueError, match=name):
        tiny.pico(**{name: value})


def test_an_index_beyond_the_table_is_an_error(data):
    x, y = batch(data)
    x = {**x, "index": np.array([0, 1, 2, 3, 4, 24])}
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        tiny.pico(count=24).train_on_batch(x, y)
