"""Image files that look like an array, and what is kept once decoded."""

import concurrent.futures
import errno
import os
import subprocess
import sys

import numpy as np
import PIL.Image
import pytest

from alim_keras.data.sources import decoded_cache
from alim_keras.data.sources import disk_images
from alim_keras.data.sources import image_files
from alim_keras.data.sources.disk_images import DiskImages
from alim_keras.data.sources.disk_images import image_rows
from alim_keras.data.sources.image_data import channel_statistics
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

SIDE = 6


@pytest.fixture
def made(tmp_path):
    """Folder, names and pixels of 20 images."""
    stream = np.random.default_rng(0)
    pixels = stream.integers(0, 256, (20, SIDE, SIDE, 3)).astype(np.uint8)
    names = [f"{n}.png" for n in range(20)]
    for name, one in zip(names, pixels, strict=True):
        PIL.Image.fromarray(one).save(tmp_path / name)
    return tmp_path, names, pixels


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


def test_it_looks_like_an_array(made):
    folder, names, pixels = made
    images = DiskImages(names, SIDE, folder=folder)
    assert images.shape == pixels.shape and images.ndim == 4
    assert images.dtype == np.uint8 and len(images) == 20
    assert images.nbytes == pixels.nbytes and images.kept_bytes == 0
    assert np.array_equal(images.read(), pixels)
    index = np.array([7, 3, 3, 19])
    assert np.array_equal(images.read(index), pixels[index])
    assert np.array_equal(images.read(slice(2, 9)), pixels[2:9])
    assert np.array_equal(images[4], pixels[4])
    assert np.array_equal(images[-1], pixels[-1])
    assert images.read(np.arange(0)).shape == (0, SIDE, SIDE, 3)
    assert np.array_equal(image_rows(images, index), pixels[index])
    assert np.array_equal(image_rows(pixels, index), pixels[index])


def test_rows_of_rows(made, opened):
    folder, names, pixels = made
    images = DiskImages(np.array(names), SIDE, folder=folder)
    mask = np.arange(20) % 2 == 1
    for rows in (slice(3, 12), mask, np.array([5, 1, 5]), [2, 0], slice(0, 0)):
        chosen = images[rows]
        assert isinstance(chosen, DiskImages)
        assert chosen.shape == (len(pixels[rows]), SIDE, SIDE, 3)
    assert opened == []
    twice = images[mask][np.array([4, 0])]
    assert np.array_equal(twice.read(), pixels[mask][[4, 0]])
    assert np.array_equal(twice.read([1]), pixels[mask][[0]])
    assert [images[mask].name(row) for row in (0, 2)] == ["1.png", "5.png"]


def test_a_million_rows_are_chosen_at_once():
    images = DiskImages([b""] * 1_000_000, 224)
    assert images.nbytes == 1_000_000 * 224 * 224 * 3
    assert images[np.arange(999_999, 0, -2)][:5].name(1) == (
        "row 999997 (an encoded image)"
    )


def test_it_does_not_become_an_array_by_itself(made):
    folder, names, _ = made
    with pytest.raises(TypeError, match="images.read"):
        np.asarray(DiskImages(names, SIDE, folder=folder))


def test_encoded_images_may_be_fetched_when_asked(made):
    folder, names, pixels = made

    class Lazy:
        asked = []

        def __len__(self):
            return 20

        def __getitem__(self, row):
            self.asked.append(int(row))
            return (folder / names[row]).read_bytes()

    source = Lazy()
    images = DiskImages(source, SIDE)[5:]
    assert Lazy.asked == []
    assert np.array_equal(images.read([2, 0]), pixels[[7, 5]])
    assert sorted(Lazy.asked) == [5, 7]


def test_grey_and_other_sizes(made):
    folder, names, pixels = made
    images = DiskImages(names[:2], 3, 1, folder)
    assert images.shape == (2, 3, 3, 1)
    expected = image_files.decode(folder / "1.png", 3, 1)
    assert np.array_equal(images[1], expected)


@pytest.mark.parametrize(
    "size, channels", [(0, 3), (None, 3), (8, 4), (2.5, 3)]
)
def test_forms_that_cannot_be(size, channels):
    with pytest.raises(ConfigError, match="Received"):
        DiskImages(["a.png"], size, channels)


def test_a_bad_file_is_named(made):
    folder, names, _ = made
    (folder / "9.png").write_bytes(b"")
    (folder / "15.png").unlink()
    images = DiskImages(names, SIDE, folder=folder)
    # The first in the order of reading, whichever thread meets one first.
    for _ in range(5):
        with pytest.raises(DataError) as found:
            images.read(np.arange(19, -1, -1))
        assert str(found.value) == (
            f"{folder}/15.png: cannot be read as an image: there is no such "
            "file; replace it or leave it out"
        )
    with pytest.raises(DataError, match="9.png: .*empty"):
        images.read([9])
    with pytest.raises(DataError, match="^row 1 .an encoded image.: .*empty"):
        DiskImages([b"", b""], SIDE)[1:].read()


@pytest.mark.parametrize("workers", [1, 3])
def test_many_threads_read_the_same(made, monkeypatch, workers):
    folder, names, pixels = made
    monkeypatch.setattr(disk_images, "num_workers", lambda: workers)
    disk_images._pool.cache_clear()
    images = DiskImages(names, SIDE, folder=folder, cache="memory")
    stream = np.random.default_rng(1)
    orders = [stream.permutation(20) for _ in range(40)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        read = list(pool.map(images.read, orders))
    for order, found in zip(orders, read, strict=True):
        assert np.array_equal(found, pixels[order])
    disk_images._pool.cache_clear()


def test_statistics_are_those_of_a_sample(made, opened):
    folder, names, pixels = made
    images = DiskImages(names, SIDE, folder=folder)
    assert channel_statistics(images) == channel_statistics(pixels)
    opened.clear()
    many = DiskImages(names * 500, SIDE, folder=folder)
    mean, std = channel_statistics(many)
    assert len(opened) == 2000
    assert np.allclose(mean, (pixels / 255).mean((0, 1, 2)), atol=0.02)
    assert np.allclose(std, (pixels / 255).std((0, 1, 2)), atol=0.02)


# Caches.


def test_memory_keeps_what_was_decoded(made, opened):
    folder, names, pixels = made
    images = DiskImages(names, SIDE, folder=folder, cache="memory")
    assert images.kept_bytes == pixels.nbytes and opened == []
    assert images[:5].kept_bytes == pixels[:5].nbytes
    images[10:].read([3, 1])
    assert sorted(map(os.path.basename, opened)) == ["11.png", "13.png"]
    # Shared by all that were made of the same images.
    assert np.array_equal(images.read(), pixels)
    assert np.array_equal(images[::2].read(), pixels[::2])
    assert len(opened) == len(set(opened)) == 20


def test_a_reader_cannot_change_the_cache(made):
    folder, names, pixels = made
    images = DiskImages(names, SIDE, folder=folder, cache="memory")
    for _ in range(2):
        found = images.read([1, 2])
        found[:] = 0
        one = images[1]
        one[:] = 0
    assert np.array_equal(images.read(), pixels)


def test_memory_that_does_not_suffice(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(decoded_cache.np, "zeros", fail)
    with pytest.raises(ConfigError, match="no room.*14.0 GiB in memory"):
        DiskImages([b""] * 100_000, 224, cache="memory")


READ = """
import sys
from alim_keras.data.sources import image_files
from PIL import Image
from alim_keras.data.sources.disk_images import DiskImages

decode, opened = image_files.decode, []
image_files.decode = lambda *args: opened.append(1) or decode(*args)
folder, cache, *names = sys.argv[1:]
images = DiskImages(names, 6, folder=folder, cache=cache)
print(images.read().sum(), len(opened))
"""


@pytest.mark.slow
def test_a_file_serves_the_next_process(made, opened, tmp_path):
    folder, names, pixels = made
    cache = str(tmp_path / "new" / "cache")
    images = DiskImages(names, SIDE, folder=folder, cache=cache)
    assert images.kept_bytes == 0
    assert np.array_equal(images.read([0, 7]), pixels[[0, 7]])
    assert np.array_equal(images.read([0, 7]), pixels[[0, 7]])
    assert len(opened) == 2
    assert os.path.getsize(cache) == 48 + 20 * (SIDE * SIDE * 3 + 1)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder), cache, *names],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    total, count = done.stdout.split()
    assert (int(total), int(count)) == (pixels.sum(dtype=int), 18)
    # What it has written is here now.
    again = DiskImages(names, SIDE, folder=folder, cache=cache)
    opened.clear()
    assert np.array_equal(again.read(), pixels)
    assert np.array_equal(images.read(), pixels)
    assert opened == []


def test_a_file_about_other_images_is_made_anew(made, opened, tmp_path):
    folder, names, pixels = made
    cache = tmp_path / "cache.npy"

    def read(names=names, size=SIDE, channels=3):
        opened.clear()
        images = DiskImages(names, size, channels, folder, cache)
        return images.read(), len(opened)

    assert read()[1] == 20
    assert read()[1] == 0
    # A file that changed, though its size did not.
    changed = pixels[3][::-1]
    path = folder / "3.png"
    PIL.Image.fromarray(changed).save(path)
    os.utime(path, ns=(1, 1))
    found, count = read()
    assert count == 20 and np.array_equal(found[3], changed)
    assert read()[1] == 0
    assert read(size=5)[1] == 20
    assert read(channels=1)[1] == 20
    assert read(names[::-1])[1] == 20
    assert np.array_equal(read(names[::-1])[0][16], changed)
    assert read(names[:10])[1] == 10
    # One that was cut short does not count.
    os.truncate(cache, os.path.getsize(cache) - 1)
    assert read(names[:10])[1] == 10
    assert read(names[:10])[1] == 0
    assert [path.name for path in tmp_path.glob("cache*")] == ["cache.npy"]


def test_a_file_that_is_no_cache_is_left_alone(made, tmp_path):
    folder, names, _ = made
    precious = tmp_path / "thesis.txt"
    precious.write_text("mine")
    for path in (precious, tmp_path):
        with pytest.raises(ConfigError, match=f"{path}: .*another file"):
            DiskImages(names, SIDE, 3, folder, path)
    assert precious.read_text() == "mine"


def test_two_runs_may_share_a_cache(made, tmp_path, opened):
    folder, names, pixels = made
    cache = tmp_path / "cache"
    first = DiskImages(names, SIDE, 3, folder, cache)
    first.read([0])
    # Another takes its place; the first goes on with what it has open.
    DiskImages(names, SIDE, 1, folder, cache).read()
    opened.clear()
    assert np.array_equal(first.read(), pixels)
    assert len(opened) == 19


def test_encoded_images_are_cached_by_their_contents(made, opened, tmp_path):
    folder, names, pixels = made
    images = [(folder / name).read_bytes() for name in names]
    cache = tmp_path / "cache"
    for order, count in ((1, 20), (1, 0), (-1, 20)):
        opened.clear()
        found = DiskImages(images[::order], SIDE, cache=cache).read()
        assert np.array_equal(found, pixels[::order])
        assert len(opened) == count


def test_a_missing_file_is_named_as_the_cache_is_made(made, tmp_path):
    folder, names, _ = made
    with pytest.raises(DataError, match="gone.png.*no such file"):
        DiskImages([*names, "gone.png"], SIDE, 3, folder, tmp_path / "cache")


def test_a_full_disk_is_named_at_once(made, tmp_path, monkeypatch):
    folder, names, _ = made

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ConfigError, match="no room.*No space left"):
        DiskImages(names, SIDE, 3, folder, tmp_path / "cache")
    assert list(tmp_path.glob("cache*")) == []


def test_pictures_to_look_at_keep_their_size_up_to_a_largest(tmp_path):
    for name, size in (("a.png", (8, 12)), ("b.png", (400, 300))):
        PIL.Image.new("RGB", size, (9, 8, 7)).save(tmp_path / name)
    images = DiskImages(["a.png", "b.png"], 64, folder=tmp_path, cache="memory")
    images.read()
    found = images.pictures(np.array([1, 0, 1]), largest=256)
    shapes = [one.shape for one in found]
    assert shapes == [(256, 256, 3), (8, 8, 3), (256, 256, 3)]
    assert (found[1] == (9, 8, 7)).all()
