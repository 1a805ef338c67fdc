"""Image files that look like an array, and what is kept once decoded."""

import os
import shutil

import numpy as np
import PIL.Image
import pytest

from alim_keras.data import DiskImages
from alim_keras.data import image_rows
from alim_keras.data import images as module
from alim_keras.data.images import channel_statistics
from alim_keras.data.images import common_form
from alim_keras.data.images import scan
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
    decode = module.decode

    def noted(source, *args, **more):
        found.append(source)
        return decode(source, *args, **more)

    monkeypatch.setattr(module, "decode", noted)
    return found


def test_it_looks_like_an_array(made):
    folder, names, pixels = made
    images = DiskImages(names, SIDE, folder=folder)
    assert images.shape == pixels.shape and images.ndim == 4
    assert images.dtype == np.uint8 and len(images) == 20
    assert images.nbytes == pixels.nbytes
    assert np.array_equal(images.read(), pixels)
    index = np.array([7, 3, 3, 19])
    assert np.array_equal(images.read(index), pixels[index])
    assert np.array_equal(images.read(slice(2, 9)), pixels[2:9])
    assert np.array_equal(images[4], pixels[4])
    assert np.array_equal(images[-1], pixels[-1])
    assert images.read(np.arange(0)).shape == (0, SIDE, SIDE, 3)
    assert np.array_equal(image_rows(images, index), pixels[index])
    assert np.array_equal(image_rows(pixels, index), pixels[index])
    with pytest.raises(TypeError, match="images.read"):
        np.asarray(images)


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


def test_small_images_are_decoded_once(made, opened, monkeypatch):
    folder, names, pixels = made
    for limit, count in ((pixels.nbytes + 1, 20), (pixels.nbytes, 60)):
        monkeypatch.setattr(module, "_KEPT", limit)
        images, before = DiskImages(names, SIDE, folder=folder), len(opened)
        images[5:].read()[:] = 0
        images[3][:] = 0
        for _ in range(2):
            assert np.array_equal(images.read(), pixels)
        assert len(opened) - before in (count, count - 4)


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
            "file; mend it, or leave its item out"
        )
    with pytest.raises(DataError, match="^row 1 .an encoded image.: .*known"):
        DiskImages([b"", b""], SIDE)[1:].read()


def test_statistics_are_those_of_a_sample(made, opened):
    folder, names, pixels = made
    images = DiskImages(names, SIDE, folder=folder)
    assert channel_statistics(images) == channel_statistics(pixels)
    opened.clear()
    many = DiskImages(names * 500, SIDE, folder=folder)
    mean, std = channel_statistics(many)
    assert len(opened) == 256
    assert np.allclose(mean, (pixels / 255).mean((0, 1, 2)), atol=0.03)
    assert np.allclose(std, (pixels / 255).std((0, 1, 2)), atol=0.03)


# Looking at many files.


def picture(path, size=(6, 4), mode="RGB", seed=0, **options):
    stream = np.random.default_rng(seed)
    pixels = stream.integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    path.parent.mkdir(exist_ok=True)
    PIL.Image.fromarray(pixels).convert(mode).save(path, **options)
    return str(path)


NO_IMAGE = "it is not an image of a known format"


@pytest.fixture
def mixed(tmp_path):
    """Case 70: good, corrupt, empty, missing, grey, CMYK, GIF and WebP."""
    picture(tmp_path / "good.png", (6, 4))
    picture(tmp_path / "grey.png", (5, 5), "L")
    picture(tmp_path / "cmyk.jpg", (9, 7), "CMYK")
    picture(tmp_path / "one.gif", (3, 2), "P")
    picture(tmp_path / "one.webp", (4, 8))
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("no image")
    whole = (tmp_path / "good.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) - 40])
    (tmp_path / "folder.png").mkdir()
    names = "good.png grey.png cmyk.jpg one.gif one.webp empty.png text.png"
    return tmp_path, [*names.split(), "cut.png", "gone.png", "folder.png"]


def test_what_is_found(mixed):
    folder, names = mixed
    found = scan(names, folder=folder)
    assert len(found) == 10
    assert found.width.tolist() == [6, 5, 9, 3, 4, 0, 0, 0, 0, 0]
    assert found.height.tolist() == [4, 5, 7, 2, 8, 0, 0, 0, 0, 0]
    assert found.channels.tolist() == [3, 1, 3, 3, 3, 0, 0, 0, 0, 0]
    sizes = [os.path.getsize(folder / n) for n in names if n != "gone.png"]
    sizes.insert(8, 0)
    assert found.bytes.tolist() == sizes
    *problems, directory = found["problem"][5:]
    assert "Is a directory" in directory
    # The head of the one that was cut short is sound, its end is not there.
    cut, gone = "it is cut short", "there is no such file"
    assert problems == [NO_IMAGE, NO_IMAGE, cut, gone]
    assert found["problem"][:5].isna().all()
    assert found["copies"].tolist() == list(range(10))
    assert found["name"].tolist() == names


def test_equal_contents_are_found(tmp_path):
    picture(tmp_path / "a.bmp", seed=1)
    picture(tmp_path / "b.bmp", seed=2)
    shutil.copy(tmp_path / "a.bmp", tmp_path / "c.bmp")
    os.symlink(tmp_path / "a.bmp", tmp_path / "d.bmp")
    os.symlink(tmp_path / "gone", tmp_path / "e.bmp")
    # The first four are of one size, three of one content.
    files = ["a.bmp", "b.bmp", "c.bmp", "d.bmp", "e.bmp", "a.bmp"]
    found = scan(files, folder=tmp_path)
    assert found["problem"].dropna().to_dict() == {4: "there is no such file"}
    assert found["copies"].tolist() == [0, 1, 0, 0, 4, 0]


def test_encoded_images(mixed):
    folder, names = mixed
    images = [(folder / name).read_bytes() for name in names[:8]]
    found = scan([*images, images[0]])
    assert found.width.tolist() == [6, 5, 9, 3, 4, 0, 0, 0, 6]
    assert found.bytes.tolist() == [len(one) for one in [*images, images[0]]]
    assert found["problem"].dropna().index.tolist() == [5, 6, 7]
    assert found["copies"].tolist() == [*range(8), 0]


def test_progress_ends_with_all(tmp_path):
    images, calls = [b"no image"] * 600, []
    scan(images, progress=lambda *counts: calls.append(counts))
    assert calls[-1] == (600, 600)
    assert all(total == 600 and done <= 600 for done, total in calls)
    assert calls == sorted(calls)


def test_the_common_size(tmp_path):
    sizes = [(8, 8), (8, 8), (9, 9)]
    files = [
        picture(tmp_path / f"{n}.png", size) for n, size in enumerate(sizes)
    ]
    # What cannot be read does not count.
    files.append(str(tmp_path / "no.png"))
    assert common_form(scan([*files[:2], files[3]])) == (8, 3)
    assert common_form(scan(files)) == (224, 3)
    assert common_form(scan([picture(tmp_path / "x.png", (9, 8))])) == (224, 3)
    grey = picture(tmp_path / "y.png", (8, 8), "L")
    assert common_form(scan([grey])) == (8, 1)
    assert common_form(scan([grey, files[0]])) == (8, 3)
    assert common_form(scan(files[3:])) == (224, 3)
