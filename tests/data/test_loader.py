"""Batches gathered on the device, without tf.data."""

import keras
import numpy as np
import pytest
import tiny

import alim_keras
from alim_keras import backend
from alim_keras.data import SparseCandidates
from alim_keras.data import batches
from alim_keras.errors import ConfigError

if keras.config.backend() == "tensorflow":
    pytest.skip("TensorFlow reads with tf.data", allow_module_level=True)


@pytest.fixture(scope="module")
def data():
    return tiny.examples(22)


def assert_same_batches(ours, theirs):
    assert len(ours) == len(theirs)
    for (x, y), (u, v) in zip(ours, theirs):
        assert set(x) == set(u)
        np.testing.assert_array_equal(x["index"], u["index"])
        assert x["image"].dtype == u["image"].dtype
        np.testing.assert_array_equal(x["image"], u["image"])
        assert y.dtype == v.dtype == np.float32
        np.testing.assert_array_equal(y, v)


def kept(candidates, how):
    if how == "rows":
        return SparseCandidates.from_multi_hot(candidates)
    return candidates.astype(how)


@pytest.mark.parametrize("how", ["bool", "float32", "rows"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("part", [0, 1])
def test_batches_are_those_of_tf_data(data, monkeypatch, how, dtype, part):
    pytest.importorskip("tensorflow")
    from alim_keras.data import loader
    from alim_keras.data import pipeline

    images, candidates, labels = data
    images, sets = images.astype(dtype), kept(candidates, how)
    found = []
    for module in (loader, pipeline):
        monkeypatch.setattr(batches, "_builder", lambda: module)
        train = tiny.batches(images, sets, 6, seed=4, shard=(part, 2))
        held_out = alim_keras.data.eval_dataset(images, sets, 3, 5)
        test = alim_keras.data.eval_dataset(images, labels, 3, 22)
        assert (len(train), len(held_out), len(test)) == (3, 5, 1)
        # Two epochs; then the eighth, as fit would ask for.
        passes = tiny.as_numpy(train) + tiny.as_numpy(train)
        train.epoch_counter.epoch = 7
        passes += tiny.as_numpy(train)
        found.append(passes + tiny.as_numpy(held_out) + tiny.as_numpy(test))
    assert_same_batches(*found)


def test_only_a_pass_from_its_beginning_counts_as_an_epoch(data):
    images, candidates, _ = data
    dataset = tiny.batches(images, candidates, 5, seed=1)
    order = batches.shuffled(22, 1, 0)
    # Keras may ask for any batch, and twice.
    for place in (2, 3, 1):
        x, _ = dataset[place]
        rows = order[5 * place : 5 * place + 5]
        np.testing.assert_array_equal(x["index"], rows)
    assert dataset.epoch_counter.epoch == 1
    x, _ = dataset[0]
    np.testing.assert_array_equal(x["index"], batches.shuffled(22, 1, 1)[:5])
    assert dataset.epoch_counter.epoch == 2


# Where the images are.


def on_device(array):
    import jax

    assert isinstance(array, np.ndarray | jax.Array)
    return isinstance(array, jax.Array)


@pytest.mark.parametrize("how", ["bool", "rows"])
def test_images_live_on_the_device(data, how):
    import jax

    images, candidates, _ = data
    sets = kept(candidates, how)
    for dataset in (
        tiny.batches(images, sets, 5),
        alim_keras.data.eval_dataset(images, sets, 3, 5),
    ):
        for x, y in dataset:
            assert on_device(x["image"])
            # Stored sets are made dense on the host, batch by batch.
            assert on_device(y) == (how == "bool")
            assert keras.backend.standardize_dtype(x["image"].dtype) == "uint8"
            assert x["image"].devices() == {jax.devices()[0]}


@pytest.mark.parametrize("how", ["bool", "rows"])
def test_images_that_do_not_fit_stay_on_the_host(data, monkeypatch, how):
    images, candidates, _ = data
    sets = kept(candidates, how)
    fitting = tiny.as_numpy(tiny.batches(images, sets, 5))
    # 22 images of 16 bytes; 22 rows of three bytes where they are dense.
    needed = 22 * 16 + (22 * 3 if how == "bool" else 0)

    def first(share):
        monkeypatch.setattr(backend, "device_memory", lambda: needed / share)
        return tiny.batches(images, sets, 5)

    # They may take two fifths of the memory.
    assert on_device(first(0.39)[0][0]["image"])
    large = first(0.41)
    assert not on_device(large[0][0]["image"])
    large.epoch_counter.epoch = 0
    assert_same_batches(fitting, tiny.as_numpy(large))


def test_training_does_not_depend_on_where_the_images_are(data, monkeypatch):
    images, candidates, labels = data
    results = []
    for memory in (None, 1):
        monkeypatch.setattr(backend, "device_memory", lambda: memory)
        model = tiny.plain(count=22)
        history = tiny.fit(
            model,
            tiny.batches(images, candidates, 6, seed=2),
            epochs=2,
            validation_data=alim_keras.data.eval_dataset(images, labels, 3, 6),
        )
        results.append((history, tiny.snapshot(model)))
    assert results[0][0] == results[1][0]
    tiny.assert_same(results[0][1], results[1][1])


def test_views_on_the_host_are_refused_by_name(data):
    images, candidates, _ = data
    for options in (
        {"views": alim_keras.augment.Views()},
        {"num_parallel_calls": 2},
    ):
        with pytest.raises(ConfigError, match="--views=device"):
            tiny.batches(images, candidates, 5, **options)
