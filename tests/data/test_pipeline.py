"""From arrays to batches: order, pairing, epochs, views."""

import itertools

import keras
import numpy as np
import pytest
import tiny

import alim_keras
from alim_keras import backend
from alim_keras.data import SparseCandidates
from alim_keras.data import batches
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError


@pytest.fixture(scope="module")
def data():
    images, candidates, labels = tiny.examples(22)
    return images, candidates, labels


def orders(dataset, passes=1):
    """The indices of each pass, batch after batch."""
    return [
        [x["index"].tolist() for x, _ in tiny.as_numpy(dataset)]
        for _ in range(passes)
    ]


def expected(seed, epoch, count=22, batch=5):
    order = batches.shuffled(count, seed, epoch).tolist()
    return [order[i : i + batch] for i in range(0, count - batch + 1, batch)]


# Order.


def test_an_order_is_a_permutation_and_a_function_of_seed_and_epoch():
    keys = list(itertools.product(range(3), range(4)))
    made = {key: tuple(batches.shuffled(50, *key)) for key in keys}
    for key, order in made.items():
        assert sorted(order) == list(range(50))
        assert order == tuple(batches.shuffled(50, *key))
    assert len(set(made.values())) == len(keys)


def test_positions_are_evenly_shared_out():
    # Where example 0 stands in 600 epochs: 10 places, 60 each, chi squared
    # with 9 degrees of freedom; 34 has p = .0001.
    places = [int(np.argmin(batches.shuffled(10, 5, e))) for e in range(600)]
    counts = np.bincount(places, minlength=10)
    assert ((counts - 60) ** 2 / 60).sum() < 34


def test_a_pass_holds_each_example_at_most_once(data):
    images, candidates, _ = data
    dataset = tiny.batches(images, candidates, 5, seed=1)
    assert len(dataset) == 4
    for order in orders(dataset, passes=3):
        flat = sum(order, [])
        assert [len(batch) for batch in order] == [5] * 4
        assert len(set(flat)) == 20


def test_each_pass_is_the_permutation_of_its_epoch(data):
    images, candidates, _ = data
    dataset = tiny.batches(images, candidates, 5, seed=1)
    assert orders(dataset, 3) == [expected(1, epoch) for epoch in range(3)]
    # Where one begins can be set, as fit does.
    dataset.epoch_counter.epoch = 7
    assert orders(dataset, 2) == [expected(1, 7), expected(1, 8)]


def test_rows_stay_paired(data):
    images, candidates, _ = data
    for x, y in tiny.as_numpy(tiny.batches(images, candidates, 5)):
        np.testing.assert_array_equal(x["image"], images[x["index"]])
        np.testing.assert_array_equal(y, candidates[x["index"]])


@pytest.mark.tensorflow("only a tf.data.Dataset repeats")
def test_repeat_brings_new_permutations(data):
    images, candidates, _ = data
    dataset = tiny.batches(images, candidates, 5, seed=1).repeat(2)
    flat = orders(dataset)[0]
    assert flat == expected(1, 0) + expected(1, 1)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("sets", ["bool", "uint8", "float32"])
def test_dtypes(data, dtype, sets):
    images, candidates, _ = data
    dataset = tiny.batches(images.astype(dtype), candidates.astype(sets), 5)
    x, y = tiny.as_numpy(dataset)[0]
    assert x["image"].dtype == dtype and x["image"].shape == (5, 4, 4, 1)
    assert x["index"].dtype == backend.INTEGER
    assert y.dtype == "float32" and y.shape == (5, 3)


# Parts for many processes, and sets in another form.


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_put_together_are_the_global_batches(data, parts):
    images, candidates, _ = data
    whole = tiny.batches(images, candidates, 6, seed=1)
    shares = [
        tiny.batches(images, candidates, 6, seed=1, shard=(part, parts))
        for part in range(parts)
    ]
    for _ in range(2):
        read = [tiny.as_numpy(share) for share in shares]
        for (x, y), *made in zip(tiny.as_numpy(whole), *read, strict=True):
            assert all(len(v) == 6 // parts for _, v in made)
            for name in ("index", "image"):
                got = np.concatenate([u[name] for u, _ in made])
                np.testing.assert_array_equal(got, x[name])
            got = np.concatenate([v for _, v in made])
            np.testing.assert_array_equal(got, y)


def test_a_batch_that_cannot_be_cut_is_named(data):
    images, candidates, _ = data
    with pytest.raises(ConfigError, match="4 processes.*batch_size=6"):
        tiny.batches(images, candidates, 6, shard=(0, 4))


class Stored:
    """The least that candidate sets in another form must offer."""

    def __init__(self, sets):
        self.sets, self.shape = sets, sets.shape

    def __len__(self):
        return len(self.sets)

    def rows(self, index):
        return self.sets[index].astype("float32")


@pytest.mark.parametrize("kind", [SparseCandidates.from_multi_hot, Stored])
def test_sets_in_another_form_give_the_same_batches(data, kind):
    images, candidates, _ = data
    stored = kind(candidates)

    def read(sets):
        return [
            *tiny.as_numpy(tiny.batches(images, sets, 5)),
            *tiny.as_numpy(alim_keras.data.eval_dataset(images, sets, 3, 5)),
        ]

    for (x, y), (u, v) in zip(read(candidates), read(stored), strict=True):
        for name in ("index", "image"):
            np.testing.assert_array_equal(x[name], u[name])
        assert y.dtype == v.dtype == np.float32
        np.testing.assert_array_equal(y, v)


# With fit.


class Seen(alim_keras.PartialLabelModel):
    """Keeps the indices of its batches, and the epoch it was told."""

    def training_loss(self, x, y, sample_weight=None):
        if not hasattr(self, "seen"):
            self.seen = {}
        indices = keras.ops.convert_to_numpy(x["index"]).tolist()
        self.seen.setdefault(int(self.epoch), []).append(indices)
        return super().training_loss(x, y, sample_weight)


def seen(count=22, **options):
    keras.utils.set_random_seed(1)
    model = Seen(tiny.backbone(), tiny.CLASSES, count, **options)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    return model


def as_lists(kept):
    return {int(epoch): [list(b) for b in order] for epoch, order in kept}


def test_the_order_follows_fits_epochs(data):
    images, candidates, _ = data
    model = seen()
    dataset = tiny.batches(images, candidates, 5, seed=2)
    # Looked at before: that must not shift the epochs.
    next(iter(dataset))
    tiny.fit(model, dataset, epochs=2)
    tiny.fit(model, dataset, epochs=6, initial_epoch=4)
    assert as_lists(model.seen.items()) == {
        epoch: expected(2, epoch) for epoch in (0, 1, 4, 5)
    }


def test_an_evaluation_between_epochs_does_not_shift_them(data):
    images, candidates, _ = data
    model = seen()
    dataset = tiny.batches(images, candidates, 5, seed=2)
    validation = tiny.batches(images, candidates, 5, seed=3)
    tiny.fit(model, dataset, epochs=2, validation_data=validation)
    assert as_lists(model.seen.items()) == {
        epoch: expected(2, epoch) for epoch in (0, 1)
    }


# Views.


@pytest.mark.tensorflow("only tf.data makes views on the host")
def test_views_on_the_host_and_in_the_step_are_the_same(data):
    images, candidates, _ = data

    def train(inside):
        views = alim_keras.augment.Views(seed=0)
        model = tiny.pico(22, views=views if inside else None)
        dataset = tiny.batches(
            images, candidates, 18, views=None if inside else views
        )
        tiny.fit(model, dataset, epochs=2, initial_epoch=1)
        return tiny.snapshot(model)

    tiny.assert_same(train(True), train(False), atol=2e-5)


@pytest.mark.tensorflow("only tf.data makes views on the host")
def test_views_on_the_host_do_not_depend_on_parallel_calls(data):
    images, candidates, _ = data

    def made(calls):
        dataset = tiny.batches(
            images,
            candidates,
            5,
            views=alim_keras.augment.Views(seed=4),
            num_parallel_calls=calls,
        )
        return tiny.as_numpy(dataset)

    first, second = made(1), made(3)
    assert len(first) == len(second) == 4
    for (x, y), (u, v) in zip(first, second):
        assert set(x) == set(u) == {"weak", "strong", "index"}
        for name in x:
            np.testing.assert_array_equal(x[name], u[name])
        np.testing.assert_array_equal(y, v)
        np.testing.assert_array_equal(y, candidates[x["index"]])
    # Weak and strong are no copies of each other, nor of the image.
    x, _ = first[0]
    assert np.abs(x["weak"] - x["strong"]).max() > 1
    assert np.abs(x["weak"] - images[x["index"]]).max() > 1


# Evaluation.


@pytest.mark.parametrize("kind", ["labels", "sets"])
def test_evaluation_batches_keep_the_order_and_the_rest(data, kind):
    images, candidates, labels = data
    y = labels if kind == "labels" else candidates
    dataset = alim_keras.data.eval_dataset(images, y, 3, 5)
    assert len(dataset) == 5
    parts = tiny.as_numpy(dataset)
    assert [len(part) for _, part in parts] == [5, 5, 5, 5, 2]
    index = np.concatenate([x["index"] for x, _ in parts])
    np.testing.assert_array_equal(index, np.arange(22))
    made = np.concatenate([x["image"] for x, _ in parts])
    np.testing.assert_array_equal(made, images)
    sets = np.concatenate([part for _, part in parts])
    expected_sets = np.eye(3)[labels] if kind == "labels" else candidates
    assert sets.dtype == np.float32
    np.testing.assert_array_equal(sets, expected_sets)


def test_evaluation_batches_can_be_passed_over_again(data):
    images, _, labels = data
    dataset = alim_keras.data.eval_dataset(images, labels, 3, 5)
    assert orders(dataset, 2)[0] == orders(dataset, 2)[1]


# Errors.


def test_lengths_are_checked(data):
    images, candidates, labels = data
    with pytest.raises(DataError, match="22 images, 21 candidate"):
        alim_keras.data.train_dataset(images, candidates[:-1], 5)
    with pytest.raises(DataError, match="22 images, 21 labels"):
        alim_keras.data.eval_dataset(images, labels[:-1], 3)


def test_a_batch_larger_than_the_data_is_refused(data):
    images, candidates, _ = data
    with pytest.raises(DataError, match="23.*22.*batch_size"):
        alim_keras.data.train_dataset(images, candidates, 23)


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_size_below_one_is_named(data, size):
    images, candidates, labels = data
    with pytest.raises(ValueError, match="batch_size"):
        alim_keras.data.train_dataset(images, candidates, size)
    with pytest.raises(ValueError, match="batch_size"):
        alim_keras.data.eval_dataset(images, labels, 3, size)


def test_labels_out_of_range_are_named_by_row():
    images = np.zeros((4, 4, 4, 1), "uint8")
    with pytest.raises(DataError, match="0..2.*3 in row 1.*2 such"):
        alim_keras.data.eval_dataset(images, [0, 3, 1, -1], 3)


def test_candidate_sets_of_another_width_are_named():
    images = np.zeros((2, 4, 4, 1), "uint8")
    with pytest.raises(DataError, match="4.*3|3.*4"):
        alim_keras.data.eval_dataset(images, np.ones((2, 4)), 3)
