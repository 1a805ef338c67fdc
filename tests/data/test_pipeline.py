"""From arrays and files to batches: order, pairing, epochs."""

import functools
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
    return tiny.examples(22)


def on_disk(images, folder):
    """Saves images; returns them as `DiskImages`."""
    names = [f"{n}.png" for n in range(22)]
    for name, pixels in zip(names, images, strict=True):
        PIL.Image.fromarray(pixels[..., 0]).save(folder / name)
    return DiskImages(names, 4, 1, folder)


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    """22 images on disk and as an array, candidate sets and labels."""
    kept = on_disk(data[0], tmp_path_factory.mktemp("images"))
    assert np.array_equal(kept.read(), data[0])
    return kept, *data


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


def test_the_order_follows_fits_epochs(data):
    images, candidates, _ = data
    seen = {}

    class Seen(alim_keras.PartialLabelModel):
        def training_loss(self, x, y, sample_weight=None):
            indices = keras.ops.convert_to_numpy(x["index"]).tolist()
            seen.setdefault(int(self.epoch), []).append(indices)
            return super().training_loss(x, y, sample_weight)

    model = Seen(tiny.backbone(), tiny.CLASSES, 22)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    dataset = tiny.batches(images, candidates, 5, seed=2)
    # Looked at before: that must not shift the epochs.
    next(iter(dataset))
    tiny.fit(model, dataset, epochs=2)
    tiny.fit(model, dataset, epochs=6, initial_epoch=4)
    assert seen == {epoch: expected(2, epoch) for epoch in (0, 1, 4, 5)}


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


def test_errors(data):
    images, sets, labels = data
    train = functools.partial(alim_keras.data.train_dataset, images)
    evaluate = functools.partial(alim_keras.data.eval_dataset, images)
    for call, error, text in (
        (lambda: train(sets[:-1], 5), DataError, "22 images, 21 candidate"),
        (lambda: evaluate(labels[:-1], 3), DataError, "22 images, 21 labels"),
        (lambda: train(sets, 23), DataError, "23.*22.*batch_size"),
        (
            lambda: train(sets, 6, 0, (0, 4)),
            ConfigError,
            "4 proc.*size=6",
        ),
        (lambda: train(sets, 0), ConfigError, "batch_size"),
        (lambda: evaluate(labels, 3, 0), ConfigError, "batch_size"),
    ):
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("shard", [(0, 1), (1, 2)])
def test_training_batches_are_those_of_an_array(files, shard):
    kept, images, candidates, _ = files
    ours, theirs = (
        tiny.batches(x, candidates, 6, seed=3, shard=shard)
        for x in (kept, images)
    )
    for epoch in (0, 1, 7):
        ours.epoch_counter.epoch = theirs.epoch_counter.epoch = epoch
        assert_same_batches(tiny.as_numpy(ours), tiny.as_numpy(theirs))


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


@pytest.mark.parametrize("what", ["fit", "evaluate", "loop"])
def test_a_broken_file_is_named(data, tmp_path, what):
    images, candidates = on_disk(data[0], tmp_path), data[1]
    path = tmp_path / "7.png"
    path.write_bytes(path.read_bytes()[:45])
    test = alim_keras.data.eval_dataset(images, candidates, 3, 6)
    with pytest.raises(Exception) as found:
        if what == "fit":
            batches = tiny.batches(images, candidates, 6)
            tiny.fit(tiny.plain(count=22), batches, epochs=2)
        elif what == "evaluate":
            tiny.plain(count=22).evaluate(test, verbose=0)
        else:
            tiny.as_numpy(test)
    error = found.value
    if what == "loop":
        # On TensorFlow it is TensorFlow's own error, which quotes.
        error = original(error) or error
    assert isinstance(error, DataError)
    assert str(error) == (
        f"{path}: cannot be read as an image: it is cut short; mend it, or "
        "leave its item out"
    )


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
