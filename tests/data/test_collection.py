"""Garbage collection is paused while tf.data's threads make a batch."""

import gc
import threading

import numpy as np
import pytest
from PIL import Image

from alim_keras.data import DiskImages
from alim_keras.data import collection
from alim_keras.data import eval_dataset


def test_it_is_paused_as_long_as_one_is_inside():
    assert gc.isenabled()
    first, second = collection.paused(), collection.paused()
    first.__enter__()
    assert not gc.isenabled()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_an_error_ends_it_too():
    with pytest.raises(ValueError):
        with collection.paused():
            raise ValueError
    assert gc.isenabled()


def test_who_had_switched_it_off_finds_it_off():
    gc.disable()
    try:
        with collection.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_many_threads_leave_it_on():
    def work():
        for _ in range(200):
            with collection.paused():
                assert not gc.isenabled()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.isenabled()


@pytest.mark.tensorflow("tf.data")
def test_files_are_read_while_it_is_paused(tmp_path, monkeypatch):
    for row in range(6):
        Image.new("L", (4, 4), row).save(tmp_path / f"{row}.png")
    images = DiskImages([f"{row}.png" for row in range(6)], 4, 1, tmp_path)
    usual, seen = DiskImages.read, []

    def read(self, index=None):
        seen.append(gc.isenabled())
        return usual(self, index)

    monkeypatch.setattr(DiskImages, "read", read)
    data = eval_dataset(images, np.zeros(6, int), 2, batch_size=2)
    found = np.concatenate([x["image"] for x, _ in data])
    assert found[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert seen == [False] * 3 and gc.isenabled()
