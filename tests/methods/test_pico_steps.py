"""Steps of PiCO, PiCO+ and IRNet against the slow ones; the key encoder."""

import keras
import numpy as np
import pytest
import references_methods
import tiny
from numpy.testing import assert_allclose
from numpy.testing import assert_array_equal

import alim_keras
from alim_keras.methods import IRNet
from alim_keras.methods import PiCOPlus
from alim_keras.methods.irnet import missing_label

SLOW_ON_JAX = pytest.mark.tensorflow("compiles a step that others run, too")
SHAPE, COUNT = (3, 3, 1), 12
OPTIONS = {
    "embedding_dim": 3,
    "queue_size": 10,  # No multiple of the batch.
    "key_momentum": 0.7,
    "prototype_momentum": 0.8,
    "temperature": 0.2,
    "contrastive_weight": 0.5,
    "mixup_weight": 0.8,
    "weight_decay": 1e-2,
    "mean": 0.4,
    "std": 0.25,
    "seed": 3,
}
PLUS = {
    "method": PiCOPlus,
    "start": 1,
    "knn_start": 2,
    "num_neighbours": 4,
    # Large enough that no two embeddings are the same: neighbours would tie.
    "features": 4,
    "embedding_dim": 4,
    "compile_options": tiny.RARE_SHAPE,
}


def build(features=3, **options):
    """A method on images of a few pixels, and its slow twin; phi is .9."""
    model = tiny.pico(
        COUNT,
        network=lambda: tiny.backbone(shape=SHAPE, features=features),
        learning_rate=0.2,
        **{**OPTIONS, **options},
    )
    kind = getattr(references_methods, f"Slow{type(model).__name__}")
    slow = kind(model, 0.2, 0.9)
    set_both(model, slow)
    return model, slow


def set_both(model, slow, phi=0.9, lam=0.0, norm="onehot", factor=1.0, epoch=2):
    table = model.pseudo_label_table
    table.momentum.assign(phi)
    table.lam.assign(lam)
    table.use_onehot.assign(float(norm == "onehot"))
    table.scale_factor.assign(factor)
    model.epoch.assign(epoch)
    slow.phi, slow.lam, slow.epoch = phi, lam, epoch
    slow.norm, slow.scale_factor = norm, factor


def batches():
    """Three batches: weak, strong and second weak views, rows and sets.

    The third meets old rows. The second weak view has a little more light.
    """
    weak, sets, _ = tiny.examples(COUNT, seed=5, shape=SHAPE)
    strong = tiny.examples(COUNT, seed=6, shape=SHAPE)[0]
    again = np.minimum(weak.astype(int) + 9, 255).astype("uint8")
    for index in ([7, 2, 9, 4], [0, 11, 3, 8], [9, 0, 7, 5]):
        index = np.array(index)
        yield (
            *(part[index] for part in (weak, strong, again)),
            index,
            sets[index],
        )


def compare(model, slow, batch, atol=1e-4, weight=()):
    """A step of both; compares logs and state. Returns the slow one's logs."""
    *views, index, candidates = batch
    x = dict(zip(("weak", "strong", "weak2"), views), index=index)
    model.reset_metrics()  # Keras 3.13 averages over calls.
    logs = model.train_on_batch(x, candidates, *weight, return_dict=True)
    views = views[: len(model.view_names)]
    expected = slow.step(*views, index, candidates, *weight)
    for name in expected.keys() & logs.keys():
        assert logs[name] == pytest.approx(expected[name], abs=atol), name

    def check(name, found, expected):
        assert_allclose(found, expected, atol=atol, rtol=0, err_msg=name)

    for variable, value in zip(model.trainable_variables, slow.parameters):
        check(variable.path, variable.numpy(), value)
    for variable, value in zip(model.key_encoder.weights, slow.key):
        check(f"key {variable.path}", variable.numpy(), value)
    check("prototypes", model.prototypes.means.numpy(), slow.prototypes)
    check("queue", model.queue.embeddings.numpy(), slow.queue)
    assert_array_equal(model.queue.labels.numpy(), slow.labels)
    check("table", model.pseudo_labels.numpy(), slow.table)
    ratio = model.pseudo_label_table.candidate_ratio.numpy()
    assert_allclose(ratio, slow.ratio, rtol=20 * atol)
    if isinstance(model, PiCOPlus):
        check("distance", model.reliability.distance.numpy(), slow.distance)
    return expected


CLASSIFIER = {"scores_from": "classifier"}
COMPILED = {**CLASSIFIER, "compile_options": {"jit_compile": False}}


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({}, {}),
        ({}, {"lam": 0.4, "norm": "scale"}),
        (CLASSIFIER, {"lam": 0.4}),
        (COMPILED, {"lam": 0.3, "norm": "scale", "factor": 0.5, "phi": 0.0}),
        ({"pseudo_label_start": 3}, {}),
        ({"pseudo_label_start": 4}, {}),
        ({"mixup_weight": 0.0, "contrastive_weight": 0.0}, {}),
        # 0: the query encoder as it was when the keys were made, that is
        # before its gradient step. 1: unmoved.
        ({"key_momentum": 0.0}, {}),
        ({"key_momentum": 1.0}, {}),
    ],
)
def test_three_steps_of_pico_equal_the_slow_ones(options, state):
    model, slow = build(**options)
    set_both(model, slow, **state)
    for batch in batches():
        compare(model, slow, batch, atol=5e-5)


@pytest.mark.parametrize(("options", "atol"), [({}, 5e-5), (PLUS, 1e-4)])
def test_weights_of_examples_scale_their_losses(options, atol):
    # Table, prototypes and queue take all examples in.
    model, slow = build(**options)
    weight = np.array([2.0, 0.0, 0.5, 1.0], "float32")
    batch = next(batches())
    if options:
        begin(model, slow, 2)
        distrust(model, slow, batch[-2][:2])
    compare(model, slow, batch, atol, (weight,))


# PiCO+.


def begin(model, slow, epoch):
    model.epoch.assign(epoch)
    model.begin_epoch(epoch)
    slow.begin_epoch(epoch)
    reliable = model.reliability.reliable.numpy()
    assert_array_equal(reliable, slow.reliable)


def distrust(model, slow, index):
    """Makes some examples unreliable, and all others reliable."""
    slow.reliable[:] = True
    slow.reliable[index] = False
    model.reliability.reliable.assign(np.float32(slow.reliable))


@pytest.mark.parametrize("lam", [0.0, 0.4])
def test_three_epochs_of_pico_plus_equal_the_slow_ones(lam):
    model, slow = build(pseudo_label_start=3 if lam else 1, **PLUS)
    set_both(model, slow, lam=lam)
    for epoch in range(3):
        begin(model, slow, epoch)
        # 9 examples are known: floor(.6 * 9) = 5 of them are reliable.
        assert (~slow.reliable).sum() == (4 if epoch else 0)
        for batch in batches():
            compare(model, slow, batch)


@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("reliable", [False, True])
def test_a_subset_may_be_empty(epoch, reliable):
    model, slow = build(**PLUS)
    begin(model, slow, epoch)
    distrust(model, slow, [] if reliable else slice(None))
    for batch in batches():
        compare(model, slow, batch)
    assert np.isfinite(model.backbone.get_weights()[0]).all()


@SLOW_ON_JAX
@pytest.mark.parametrize("mixup_weight", [0.0, 1.0])
def test_a_batch_of_three(mixup_weight):
    model, slow = build(**{**PLUS, "mixup_weight": mixup_weight})
    begin(model, slow, 2)
    distrust(model, slow, [7, 11, 0])
    for batch in batches():
        compare(model, slow, [part[:3] for part in batch])


# IRNet.


@pytest.mark.parametrize(("label_loss", "lam"), [("sce", 0.0), ("ce", 0.4)])
def test_steps_of_irnet_equal_the_slow_ones(label_loss, lam):
    options = {"tau": 0.0, "correct_start": 0.0, "label_loss": label_loss}
    options["compile_options"] = tiny.RARE_SHAPE
    model, slow = build(method=IRNet, **options)
    set_both(model, slow, lam=lam)
    corrected = []
    for batch in [*batches()] * 2:
        corrected.append(compare(model, slow, batch)["corrected"])
        added = model.added_labels.table.numpy()
        for i, row in zip(*batch[-2:]):
            assert_array_equal(np.maximum(row, added[i]), slow.sets.get(i, row))
    # All prototypes are zero in the first step: no label leads. Later steps
    # meet sets that earlier ones enlarged.
    assert corrected[0] == 0.0
    assert sum(corrected[1:]) > 0.0


def test_missing_label_by_hand():
    # Lead over the candidates: .5 - .3; the views disagree; .36 - .34 < tau;
    # nothing is outside.
    sure = [0.5, 0.3, 0.2]
    first = [sure, sure, [0.36, 0.34, 0.3], sure]
    second = [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.6, 0.3, 0.1], sure]
    sets = np.array([[0, 1, 1], [0, 1, 0], [0, 1, 1], [1, 1, 1]], "float32")
    label, noisy = missing_label(
        np.array(first, "float32"), np.array(second, "float32"), sets, 0.05
    )
    assert_array_equal(np.array(label)[:3], [0, 0, 0])
    assert_array_equal(noisy, [True, False, False, False])


@SLOW_ON_JAX
def test_sets_are_corrected_after_a_share_of_the_epochs():
    options = {"correct_start": 0.5, "compile_options": tiny.RARE_SHAPE}
    model = tiny.pico(method=IRNet, tau=0.0, **options)
    images, candidates, _ = tiny.examples(24)
    history = tiny.fit(model, tiny.batches(images, candidates, 6), epochs=4)
    assert history["corrected"][:2] == [0.0, 0.0]
    added = model.added_labels.table.numpy()
    assert sum(history["corrected"]) == added.sum() > 0
    assert not (added * candidates).any()
    assert "corrected" in model.training_logs


def test_alim_between_epochs_meets_the_corrected_sets():
    images, candidates, _ = tiny.examples(24)
    options = {"correct_start": 1.0, "compile_options": tiny.RARE_SHAPE}
    model = tiny.pico(method=IRNet, **options)
    data = alim_keras.data.eval_dataset(images, candidates, 3, 6)
    # One-sided: the sets become full, whose ratio is infinite.
    model.added_labels.table.assign(np.ones((24, 3)))
    alim = alim_keras.callbacks.ALIM(
        lam=0.0, update="epoch", data=data, warmup_epochs=1
    )
    tiny.fit(model, tiny.batches(images, candidates, 6), callbacks=[alim])
    ratios = model.pseudo_label_table.candidate_ratio.numpy()
    assert np.isinf(ratios).all()


# The key encoder.


def test_the_key_encoder_starts_equal_and_stays_frozen():
    model = tiny.pico(batch_norm=True)
    count = len(model.trainable_variables)
    model.trainable = False
    model.trainable = True
    assert len(model.trainable_variables) == count
    query = model.backbone.weights + model.projection.weights
    key = model.key_encoder.weights
    assert len(query) == len(key) == 10
    for q, k in zip(query, key):
        assert_array_equal(q.numpy(), k.numpy())
        assert q is not k


def test_key_batch_normalisation_is_in_training_mode():
    # Case 19, pitfall P3: its own batch statistics, moved by its own views.
    x, y = tiny.batch()
    stream = np.random.default_rng(0)
    strong = stream.uniform(0, 255, x["image"].shape).astype("float32")
    model = tiny.pico(batch_norm=True, key_momentum=1.0)
    body = model.key_encoder.layers[0]
    inner = keras.Model(body.inputs, body.layers[-2].output)
    hidden = inner.predict(model.prepare(strong), verbose=0)
    mean, variance = hidden.mean(axis=0), hidden.var(axis=0)
    views = {"weak": x["image"], "strong": strong, "index": x["index"]}
    model.train_on_batch(views, y)
    norm = body.layers[-1]
    # Moving: .9 (start) + .1 (batch).
    assert_allclose(norm.moving_mean.numpy(), 0.1 * mean, atol=1e-5)
    moved = 0.9 + 0.1 * variance
    assert_allclose(norm.moving_variance.numpy(), moved, atol=1e-5)
    # The keys are made with the batch's statistics.
    normalised = (hidden - mean) / np.sqrt(variance + 1e-5)
    keys = model.key_encoder.layers[1].predict(normalised, verbose=0)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    assert_allclose(model.queue.embeddings.numpy()[-6:], keys, atol=1e-4)


def test_only_parameters_take_part_in_the_moving_average():
    x, y = tiny.batch()
    model = tiny.pico(batch_norm=True, key_momentum=0.0)
    model.train_on_batch(x, y)
    query = model.backbone.layers[-1].moving_mean.numpy()
    key = model.key_encoder.layers[0].layers[-1].moving_mean.numpy()
    # The query encoder has seen the mixed batch too, the key encoder not.
    assert np.abs(query - key).max() > 1e-4


def test_a_frozen_backbone_trains_its_heads():
    x, y = tiny.batch()

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
        assert_array_equal(old, new)
    assert np.abs(kernel - model.classifier.kernel.numpy()).max() > 0
