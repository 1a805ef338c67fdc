"""Batches of images on disk: the same as those of an array, little memory."""

import os

import keras
import numpy as np
import PIL.Image
import pytest
import tiny

import alim_keras
from alim_keras.cli.main import explain
from alim_keras.data import DiskImages
from alim_keras.data import batches
from alim_keras.data.sources import image_files
from alim_keras.errors import DataError


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """22 images on disk and as an array, candidate sets and labels."""
    folder = tmp_path_factory.mktemp("images")
    images, candidates, labels = tiny.examples(22)
    names = [f"{n}.png" for n in range(22)]
    for name, pixels in zip(names, images, strict=True):
        PIL.Image.fromarray(pixels[..., 0]).save(folder / name)
    kept = DiskImages(names, 4, 1, folder)
    assert np.array_equal(kept.read(), images)
    return kept, images, candidates, labels


@pytest.fixture
def opened(monkeypatch):
    """The files that were decoded."""
    found = []
    decode = image_files.decode

    def noted(source, *args):
        found.append(source)
        return decode(source, *args)

    monkeypatch.setattr(image_files, "decode", noted)
    return found


def assert_same_batches(ours, theirs):
    assert len(ours) == len(theirs) > 0
    for (x, y), (u, v) in zip(ours, theirs, strict=True):
        assert set(x) == set(u)
        for name in x:
            assert x[name].dtype == u[name].dtype, name
            np.testing.assert_array_equal(x[name], u[name])
        assert y.dtype == v.dtype
        np.testing.assert_array_equal(y, v)


@pytest.mark.parametrize("shard", [(0, 1), (0, 2), (1, 2)])
def test_training_batches_are_those_of_an_array(data, shard):
    kept, images, candidates, _ = data

    def passes(images):
        dataset = tiny.batches(images, candidates, 6, seed=3, shard=shard)
        assert len(dataset) == 3 and dataset.num_examples == 22
        found = tiny.as_numpy(dataset) + tiny.as_numpy(dataset)
        dataset.epoch_counter.epoch = 7
        return found + tiny.as_numpy(dataset)

    assert_same_batches(passes(kept), passes(images))


def test_a_pass_is_the_full_permutation(data):
    kept, _, candidates, _ = data
    dataset = tiny.batches(kept, candidates, 2, seed=5)
    for epoch in range(2):
        index = [x["index"] for x, _ in tiny.as_numpy(dataset)]
        expected = batches.shuffled(22, 5, epoch)
        assert np.concatenate(index).tolist() == expected.tolist()


def test_rows_of_rows_are_streamed(data):
    kept, images, candidates, _ = data
    rows = np.array([3, 1, 20, 7, 7])

    def read(images):
        return tiny.as_numpy(tiny.batches(images[rows], candidates[rows], 2))

    assert_same_batches(read(kept), read(images))


@pytest.mark.parametrize("size", [5, 11, 30])
def test_evaluation_batches_are_those_of_an_array(data, size):
    kept, images, candidates, labels = data
    for sets in (labels, candidates):
        ours, theirs = (
            alim_keras.data.eval_dataset(one, sets, 3, size)
            for one in (kept, images)
        )
        assert len(ours) == len(theirs)
        first = tiny.as_numpy(ours)
        assert_same_batches(first, tiny.as_numpy(theirs))
        assert_same_batches(tiny.as_numpy(ours), first)
    index = np.concatenate([x["index"] for x, _ in first])
    assert index.tolist() == list(range(22))
    assert len(first[-1][1]) == (22 % size or size)


@pytest.mark.tensorflow("only tf.data makes views on the host")
def test_views_on_the_host_are_those_of_an_array(data):
    kept, images, candidates, _ = data

    def read(images):
        dataset = tiny.batches(
            images,
            candidates,
            5,
            views=alim_keras.augment.Views(seed=4),
            num_parallel_calls=3,
            view_names=("weak",),
        )
        return tiny.as_numpy(dataset) + tiny.as_numpy(dataset)

    ours = read(kept)
    assert set(ours[0][0]) == {"weak", "index"}
    assert_same_batches(ours, read(images))


def test_shapes_are_known_before_reading(data):
    kept, _, candidates, _ = data
    dataset = tiny.batches(kept, candidates, 5)
    if keras.config.backend() == "tensorflow":
        spec = dataset.element_spec[0]["image"]
        assert spec.shape.as_list() == [None, 4, 4, 1]
        assert spec.dtype == "uint8"
    x, _ = next(iter(dataset))
    assert tuple(x["image"].shape) == (5, 4, 4, 1)


def test_training_is_that_of_an_array(data):
    kept, images, candidates, labels = data
    results = []
    for one in (kept, images):
        model = tiny.plain(count=22)
        history = tiny.fit(
            model,
            tiny.batches(one, candidates, 6, seed=2),
            epochs=2,
            validation_data=alim_keras.data.eval_dataset(one, labels, 3, 6),
        )
        results.append((history, tiny.snapshot(model)))
    assert results[0][0] == results[1][0]
    tiny.assert_same(results[0][1], results[1][1])


def test_batches_may_be_asked_for_in_any_order(data):
    if keras.config.backend() == "tensorflow":
        pytest.skip("a tf.data.Dataset is read from its beginning")
    kept, images, candidates, _ = data
    dataset = tiny.batches(kept, candidates, 5, seed=1)
    order = batches.shuffled(22, 1, 0)
    for place in (2, 3, 1, 1, 3):
        x, _ = dataset[place]
        rows = order[5 * place : 5 * place + 5]
        np.testing.assert_array_equal(x["index"], rows)
        np.testing.assert_array_equal(x["image"], images[rows])
    assert dataset.epoch_counter.epoch == 1
    np.testing.assert_array_equal(
        dataset[0][0]["image"], images[batches.shuffled(22, 1, 1)[:5]]
    )


def test_lengths_are_checked(data):
    kept, _, candidates, _ = data
    with pytest.raises(DataError, match="22 images, 21 candidate"):
        tiny.batches(kept, candidates[:-1], 5)


# Caches.


@pytest.mark.parametrize("where", ["memory", "file"])
def test_files_are_read_once_and_views_stay_fresh(
    data, opened, tmp_path, where
):
    # Case 48: what is cached are images, not their views.
    kept, images, candidates, _ = data
    cache = "memory" if where == "memory" else tmp_path / "cache"
    folder, names = kept._folder, kept._files
    cached = DiskImages(names, 4, 1, folder, cache)
    on_host = keras.config.backend() == "tensorflow" and where == "memory"
    views = alim_keras.augment.Views(seed=0)
    options = {"views": views, "view_names": ("weak",)} if on_host else {}
    dataset = tiny.batches(cached, candidates, 11, seed=1, **options)
    first, second = tiny.as_numpy(dataset), tiny.as_numpy(dataset)
    # An epoch is begun while the last one ends, so that two threads may have
    # decoded the same file; from here on nothing does.
    assert set(map(os.path.basename, opened)) == set(names)
    count = len(opened)
    tiny.as_numpy(dataset)
    assert len(opened) == count

    def by_index(found):
        name = "weak" if on_host else "image"
        pixels = np.concatenate([x[name] for x, _ in found])
        order = np.argsort(np.concatenate([x["index"] for x, _ in found]))
        return pixels[order]

    first, second = by_index(first), by_index(second)
    if not on_host:
        np.testing.assert_array_equal(first, images)
        np.testing.assert_array_equal(second, images)
        return
    differs = np.abs(first - second).reshape(22, -1).max(axis=1) > 1
    assert differs.sum() >= 20


# Errors.

CUT = "cannot be read as an image: it is cut short; replace it or leave it out"


@pytest.fixture
def broken(data, tmp_path):
    """The images, of which one was cut short; and its path."""
    kept, images, candidates, _ = data
    names = [f"{n}.png" for n in range(22)]
    for name, pixels in zip(names, images, strict=True):
        PIL.Image.fromarray(pixels[..., 0]).save(tmp_path / name)
    path = tmp_path / "7.png"
    path.write_bytes(path.read_bytes()[:45])
    return DiskImages(names, 4, 1, tmp_path), candidates, str(path)


@pytest.mark.parametrize("what", ["fit", "evaluate", "predict"])
def test_a_broken_file_is_named(broken, what):
    images, candidates, path = broken
    model = tiny.plain(count=22)
    with pytest.raises(DataError) as found:
        if what == "fit":
            tiny.fit(model, tiny.batches(images, candidates, 6), epochs=2)
        else:
            test = alim_keras.data.eval_dataset(images, candidates, 3, 6)
            getattr(model, what)(test, verbose=0)
    line = f"{path}: {CUT}"
    assert str(found.value) == line
    assert explain(found.value) == (3, f"error: {line}")


def test_a_loop_over_batches_ends_with_the_same_line(broken):
    # Not in `fit`: on TensorFlow it is TensorFlow's own error, which quotes.
    images, candidates, path = broken
    with pytest.raises(Exception) as found:
        tiny.as_numpy(alim_keras.data.eval_dataset(images, candidates, 3, 6))
    assert explain(found.value) == (3, f"error: {path}: {CUT}")


# Memory.


@pytest.mark.slow
def test_memory_does_not_grow_with_the_images(tmp_path):
    # 3,000 images of 64 x 64 x 3 are 35 MiB decoded, read five times.
    stream = np.random.default_rng(0)
    pixels = stream.integers(0, 256, (8, 8, 3)).astype(np.uint8)
    PIL.Image.fromarray(pixels).save(tmp_path / "x.png")
    content = (tmp_path / "x.png").read_bytes()
    images = DiskImages([content] * 3000, 64)
    candidates = np.eye(3)[stream.integers(0, 3, 3000)]
    dataset = tiny.batches(images, candidates, 50)

    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def one_pass():
        return sum(len(y) for _, y in dataset)

    assert one_pass() == 3000
    before = resident()
    for _ in range(5):
        assert one_pass() == 3000
    assert resident() - before < 60e6
