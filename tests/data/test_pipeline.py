"""From arrays and files to batches: order, pairing, epochs."""

import gc

import keras
import numpy as np
import PIL.Image
import pytest
import tiny

import alim_keras
from alim_keras import backend
from alim_keras.data import CandidateSets
from alim_keras.data import DiskImages
from alim_keras.data import pipeline
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import original


@pytest.fixture(scope="module")
def data():
    images, candidates, labels = tiny.examples(22)
    return images, candidates, labels


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    """22 images on disk and as an array, candidate sets and labels."""
    folder = tmp_path_factory.mktemp("images")
    images, candidates, labels = data
    names = [f"{n}.png" for n in range(22)]
    for name, pixels in zip(names, images, strict=True):
        PIL.Image.fromarray(pixels[..., 0]).save(folder / name)
    kept = DiskImages(names, 4, 1, folder)
    assert np.array_equal(kept.read(), images)
    return kept, images, candidates, labels


def assert_same_batches(ours, theirs):
    assert len(ours) == len(theirs) > 0
    for (x, y), (u, v) in zip(ours, theirs, strict=True):
        assert set(x) == set(u)
        for name in x:
            assert x[name].dtype == u[name].dtype, name
            np.testing.assert_array_equal(x[name], u[name])
        assert y.dtype == v.dtype == np.float32
        np.testing.assert_array_equal(y, v)


def orders(dataset, passes=1):
    """The indices of each pass, batch after batch."""
    return [
        [x["index"].tolist() for x, _ in tiny.as_numpy(dataset)]
        for _ in range(passes)
    ]


def expected(seed, epoch, count=22, batch=5):
    order = pipeline.shuffled(count, seed, epoch).tolist()
    return [order[i : i + batch] for i in range(0, count - batch + 1, batch)]


def test_it_is_paused_as_long_as_a_batch_is_made():
    with pipeline._no_collection():
        with pytest.raises(ValueError):
            with pipeline._no_collection():
                raise ValueError
        assert not gc.isenabled()
    assert gc.isenabled()


# Order.


def test_each_pass_is_the_permutation_of_its_epoch(data):
    images, candidates, _ = data
    dataset = tiny.batches(images, candidates, 5, seed=1)
    assert orders(dataset, 3) == [expected(1, epoch) for epoch in range(3)]
    # Where one begins can be set, as fit does.
    dataset.epoch_counter.epoch = 7
    assert orders(dataset, 2) == [expected(1, 7), expected(1, 8)]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_rows_stay_paired(data, dtype):
    images, candidates, _ = data
    images, sets = images.astype(dtype), CandidateSets.from_dense(candidates)
    batches = tiny.as_numpy(tiny.batches(images, candidates.astype(dtype), 5))
    for x, y in batches:
        np.testing.assert_array_equal(x["image"], images[x["index"]])
        np.testing.assert_array_equal(y, candidates[x["index"]])
        assert x["image"].dtype == dtype and x["image"].shape == (5, 4, 4, 1)
        assert x["index"].dtype == backend.INTEGER
        assert y.dtype == "float32" and y.shape == (5, 3)
    assert_same_batches(tiny.as_numpy(tiny.batches(images, sets, 5)), batches)


# Parts for many processes.


@pytest.mark.parametrize("parts", [2, 3])
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


def test_what_is_behind_a_data_set(data):
    images, candidates, _ = data
    sets = CandidateSets.from_dense(candidates)
    for dataset in (
        tiny.batches(images, sets, 5),
        alim_keras.data.eval_dataset(images, sets, 3, 5),
        (images, candidates),
    ):
        behind, stored = pipeline.examples_of(dataset)
        np.testing.assert_array_equal(behind, images)
        np.testing.assert_array_equal(stored.dense(), candidates)
    with pytest.raises(DataError, match="train_dataset.*Received: ndarray"):
        pipeline.examples_of(images)


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


# Evaluation.


@pytest.mark.parametrize("kind", ["labels", "sets"])
@pytest.mark.parametrize("on_disk", [False, True])
def test_evaluation_batches_keep_the_order_and_the_rest(files, kind, on_disk):
    kept, images, candidates, labels = files
    y = labels if kind == "labels" else candidates
    dataset = alim_keras.data.eval_dataset(kept if on_disk else images, y, 3, 5)
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
    assert_same_batches(tiny.as_numpy(dataset), parts)


# Errors.


def test_errors(data):
    images, candidates, labels = data
    train, evaluate = (
        alim_keras.data.train_dataset,
        alim_keras.data.eval_dataset,
    )
    with pytest.raises(DataError, match="22 images, 21 candidate"):
        train(images, candidates[:-1], 5)
    with pytest.raises(DataError, match="22 images, 21 labels"):
        evaluate(images, labels[:-1], 3)
    with pytest.raises(DataError, match="23.*22.*batch_size"):
        train(images, candidates, 23)
    with pytest.raises(ConfigError, match="4 processes.*batch_size=6"):
        train(images, candidates, 6, shard=(0, 4))
    with pytest.raises(ValueError, match="batch_size"):
        train(images, candidates, 0)
    with pytest.raises(ValueError, match="batch_size"):
        evaluate(images, labels, 3, 0)


# Images on disk.


@pytest.mark.parametrize("shard", [(0, 1), (1, 2)])
def test_training_batches_are_those_of_an_array(files, shard):
    kept, images, candidates, _ = files

    def passes(images):
        dataset = tiny.batches(images, candidates, 6, seed=3, shard=shard)
        assert len(dataset) == 3
        found = tiny.as_numpy(dataset) + tiny.as_numpy(dataset)
        dataset.epoch_counter.epoch = 7
        return found + tiny.as_numpy(dataset)

    assert_same_batches(passes(kept), passes(images))


def test_batches_may_be_asked_for_in_any_order(files):
    if keras.config.backend() == "tensorflow":
        pytest.skip("a tf.data.Dataset is read from its beginning")
    kept, images, candidates, _ = files
    dataset = tiny.batches(kept, candidates, 5, seed=1)
    order = pipeline.shuffled(22, 1, 0)
    for place in (2, 3, 1, 1, 3):
        x, _ = dataset[place]
        rows = order[5 * place : 5 * place + 5]
        np.testing.assert_array_equal(x["index"], rows)
        np.testing.assert_array_equal(x["image"], images[rows])
    assert dataset.epoch_counter.epoch == 1
    np.testing.assert_array_equal(
        dataset[0][0]["image"], images[pipeline.shuffled(22, 1, 1)[:5]]
    )


CUT = (
    "cannot be read as an image: it is cut short; mend it, or leave its item "
    "out"
)


@pytest.fixture
def broken(files, tmp_path):
    """The images, of which one was cut short; and its path."""
    kept, images, candidates, _ = files
    names = [f"{n}.png" for n in range(22)]
    for name, pixels in zip(names, images, strict=True):
        PIL.Image.fromarray(pixels[..., 0]).save(tmp_path / name)
    path = tmp_path / "7.png"
    path.write_bytes(path.read_bytes()[:45])
    return DiskImages(names, 4, 1, tmp_path), candidates, str(path)


@pytest.mark.parametrize("what", ["fit", "evaluate"])
def test_a_broken_file_is_named(broken, what):
    images, candidates, path = broken
    model = tiny.plain(count=22)
    with pytest.raises(DataError) as found:
        if what == "fit":
            tiny.fit(model, tiny.batches(images, candidates, 6), epochs=2)
        else:
            test = alim_keras.data.eval_dataset(images, candidates, 3, 6)
            model.evaluate(test, verbose=0)
    assert str(found.value) == f"{path}: {CUT}"


def test_a_loop_over_batches_ends_with_the_same_line(broken):
    # Not in `fit`: on TensorFlow it is TensorFlow's own error, which quotes.
    images, candidates, path = broken
    with pytest.raises(Exception) as found:
        tiny.as_numpy(alim_keras.data.eval_dataset(images, candidates, 3, 6))
    error = original(found.value) or found.value
    assert isinstance(error, DataError) and str(error) == f"{path}: {CUT}"


# Where the images are (JAX).


@pytest.mark.parametrize("memory", [None, 1])
def test_training_does_not_depend_on_where_the_images_are(
    data, monkeypatch, memory
):
    if keras.config.backend() == "tensorflow":
        pytest.skip("tf.data reads from the host")
    images, candidates, _ = data
    expected_batches = tiny.as_numpy(
        tiny.batches(images, candidates, 6, seed=2)
    )
    # An array larger than two fifths of the device stays on the host.
    monkeypatch.setattr(backend, "device_memory", lambda: memory)
    dataset = tiny.batches(images, candidates, 6, seed=2)
    assert isinstance(dataset[0][0]["image"], np.ndarray) == (memory == 1)
    dataset.epoch_counter.epoch = 0
    assert_same_batches(tiny.as_numpy(dataset), expected_batches)
