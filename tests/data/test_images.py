"""Image files: how each kind is decoded, read as an array and scanned."""

import io
import os
import shutil
import struct
import tracemalloc
import unittest.mock

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest

from alim_keras.data import DiskImages
from alim_keras.data import images as module
from alim_keras.data.images import channel_statistics
from alim_keras.data.images import common_form
from alim_keras.data.images import decode
from alim_keras.data.images import image_rows
from alim_keras.data.images import scan
from alim_keras.data.images import square
from alim_keras.errors import DataError

SIDE = 6


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, "uint8")


@pytest.fixture
def made(tmp_path):
    """Folder, names and pixels of 20 images."""
    pixels = noise(20, SIDE, SIDE, 3)
    names = [f"{n}.png" for n in range(20)]
    for name, one in zip(names, pixels, strict=True):
        PIL.Image.fromarray(one).save(tmp_path / name)
    return tmp_path, names, pixels


@pytest.fixture
def opened(monkeypatch):
    """A mock that counts the files that were decoded."""
    opened = unittest.mock.Mock(wraps=module.decode)
    monkeypatch.setattr(module, "decode", opened)
    return opened


def test_it_looks_like_an_array(made):
    folder, names, pixels = made
    images = DiskImages(names, SIDE, folder=folder)
    assert images.shape == pixels.shape
    assert images.dtype == np.uint8 and len(images) == 20
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
    assert not opened.called
    twice = images[mask][np.array([4, 0])]
    assert np.array_equal(twice.read(), pixels[mask][[4, 0]])
    assert np.array_equal(twice.read([1]), pixels[mask][[0]])


def test_small_images_are_decoded_once(made, opened, monkeypatch):
    folder, names, pixels = made
    for limit, count in ((pixels.nbytes + 1, 20), (pixels.nbytes, 60)):
        monkeypatch.setattr(module, "_KEPT", limit)
        images = DiskImages(names, SIDE, folder=folder)
        opened.reset_mock()
        images[5:].read()[:] = 0
        images[3][:] = 0
        for _ in range(2):
            assert np.array_equal(images.read(), pixels)
        assert opened.call_count in (count, count - 4)


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
    opened.reset_mock()
    many = DiskImages(names * 500, SIDE, folder=folder)
    mean, std = channel_statistics(many)
    assert opened.call_count == 256
    assert np.allclose(mean, (pixels / 255).mean((0, 1, 2)), atol=0.03)
    assert np.allclose(std, (pixels / 255).std((0, 1, 2)), atol=0.03)


def picture(path, size=(6, 4), mode="RGB", seed=0):
    pixels = noise(size[1], size[0], 3, seed=seed)
    PIL.Image.fromarray(pixels).convert(mode).save(path)
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
    small = picture(tmp_path / "small.png", (8, 8))
    large = picture(tmp_path / "large.png", (9, 9))
    wide = picture(tmp_path / "wide.png", (9, 8))
    grey = picture(tmp_path / "grey.png", (8, 8), "L")
    for files, form in (
        # What cannot be read does not count.
        ([small, small, "no.png"], (8, 3)),
        ([small, large, "no.png"], (224, 3)),
        ([wide], (224, 3)),
        ([grey], (8, 1)),
        ([grey, small], (8, 3)),
        (["no.png"], (224, 3)),
    ):
        assert common_form(scan(files)) == form


def saved(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def grey(levels, mode="L"):
    image = PIL.Image.new(mode, (len(levels[0]), len(levels)))
    image.putdata([level for row in levels for level in row])
    return image


def first_pixel(content, channels=3):
    return decode(content, 1, channels)[0, 0].tolist()


@pytest.mark.parametrize(
    "mode, value, colour, level",
    [
        ("1", 1, [255, 255, 255], [255]),
        ("1", 0, [0, 0, 0], [0]),
        ("L", 77, [77, 77, 77], [77]),
        # 255 - 128 / 255 x (255 - 0): half black on white.
        ("LA", (0, 128), [127, 127, 127], [127]),
        ("LA", (9, 0), [255, 255, 255], [255]),
        # L = .299 R + .587 G + .114 B = 59.8 + 58.7 + 5.7
        ("RGB", (200, 100, 50), [200, 100, 50], [124]),
        ("RGBA", (255, 0, 0, 128), [255, 127, 127], [165]),
        ("RGBA", (1, 2, 3, 0), [255, 255, 255], [255]),
    ],
)
def test_modes(mode, value, colour, level):
    content = saved(PIL.Image.new(mode, (3, 3), value))
    assert first_pixel(content) == colour
    assert first_pixel(content, 1) == level


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_transparent_palette_entries_become_white(kind):
    image = PIL.Image.new("P", (2, 2))
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putdata([0, 1, 1, 0])
    found = decode(saved(image, kind, transparency=0), 2, 3)
    white, other = [255, 255, 255], [200, 100, 50]
    assert found.tolist() == [[white, other], [other, white]]


def test_sixteen_bits_lose_the_lower_eight():
    image = grey([[0x1234, 0x00FF]] * 2, "I;16")
    raw = struct.pack(">HH", 0x1234, 0x00FF) * 2
    contents = (saved(image), saved(image, "TIFF"), b"P5 2 2 65535\n" + raw)
    for content in contents:
        for channels in (1, 3):
            found = decode(content, 2, channels)
            assert found[1, :, 0].tolist() == [0x12, 0]
            assert found.shape == (2, 2, channels)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_exif_orientation(kind):
    # Blocks of 8 x 8: a square crop of two pixels would lose one of them.
    image = grey([[10, 200]]).resize((16, 16), PIL.Image.Resampling.NEAREST)
    exif = PIL.Image.Exif()
    exif[0x0112] = 8
    found = decode(saved(image, kind, exif=exif), 16, 1)[..., 0]
    # A quarter to the left: what was on the right is on top.
    assert (found[:8] == 200).all() and (found[8:] == 10).all()


def gradient(width, height):
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[..., 0] = np.linspace(0, 255, width)
    pixels[..., 1] = np.linspace(0, 255, height)[:, None]
    return PIL.Image.fromarray(pixels)


@pytest.mark.parametrize("width, height", [(803, 601), (640, 640)])
def test_a_jpeg_decoded_smaller_is_the_same_picture(width, height):
    image = gradient(width, height)
    content = saved(image, "JPEG", quality=95, subsampling=0)
    draft = decode(content, 32)
    exact = square(PIL.Image.open(io.BytesIO(content)), 32)
    assert draft.shape == (32, 32, 3)
    assert np.abs(draft.astype(int) - exact).max() <= 3
    # It was decoded at a quarter or more of its size at once.
    opened = PIL.Image.open(io.BytesIO(content))
    assert min(opened.draft(None, (86, 64)) and opened.size) < 200


def refused(source):
    with pytest.raises(DataError) as found:
        decode(source, 8)
    name, why = str(found.value).split(": cannot be read as an image: ")
    assert "\n" not in why
    return name, why.removesuffix("; mend it, or leave its item out")


def test_a_whole_picture_keeps_its_form_and_grows_no_larger():
    image = PIL.Image.new("RGB", (80, 20), "red")
    image.paste("blue", (40, 0, 80, 20))
    found = decode(saved(image), 40, whole=True)
    assert found.shape == (10, 40, 3)
    assert found[5, 2].tolist() == [255, 0, 0]
    assert found[5, 37].tolist() == [0, 0, 255]
    assert decode(saved(image), 400, whole=True).shape == (20, 80, 3)
    assert decode(saved(image), 400, 1, whole=True).shape[2] == 1


@pytest.mark.filterwarnings("error")
def test_bad_files_are_named_with_a_reason(tmp_path):
    whole = saved(gradient(64, 64))
    jpeg = saved(gradient(64, 64), "JPEG")
    contents = {
        "empty.png": (b"", "it is not an image of a known format"),
        "text.jpg": (b"hello\n" * 9, "it is not an image of a known format"),
        "cut.png": (whole[: len(whole) // 2], "it is cut short"),
        "cut.jpg": (jpeg[: len(jpeg) // 2], "it is cut short"),
        "program.eps": (
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
            "it is not an image of a known format",
        ),
    }
    for name, (content, why) in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert refused(path) == (str(path), why)
        assert refused(content) == ("an encoded image", why)
    assert refused(tmp_path / "no.png")[1] == "there is no such file"
    assert "Is a directory" in refused(tmp_path)[1]


@pytest.mark.parametrize(
    "dtype, kind", [("float32", "floats"), ("int32", "integers of 32 bits")]
)
def test_numbers_without_a_known_range(dtype, kind):
    content = saved(PIL.Image.fromarray(np.array([[0, 7]], dtype)), "TIFF")
    with pytest.raises(DataError, match=f"pixels are {kind}, save it with 8"):
        decode(content, 3, 1)
    assert kind in scan([content])["problem"][0]


@pytest.mark.parametrize("size", [(60000, 1), (4000, 20)])
def test_a_long_strip_takes_no_memory(size):
    # 60,000 x 1 pixels scaled whole to 224 would be 3 billion.
    image = PIL.Image.new("RGB", size, (10, 20, 30))
    middle = [side // 2 for side in size]
    image.paste((200, 100, 50), (*middle, middle[0] + 1, middle[1] + 1))
    content = saved(image)
    tracemalloc.start()
    made = decode(content, 224)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.shape == (224, 224, 3) and peak < 2e6
    assert made.max() > 100 and (made[0, 0] == (10, 20, 30)).all()


def test_a_strip_is_cropped_where_the_whole_would_be():
    image = PIL.Image.fromarray(noise(20, 1000, 3))
    whole = image.resize((400, 8), PIL.Image.Resampling.BILINEAR)
    whole = np.asarray(whole.crop((196, 0, 204, 8))).astype(int)
    # It reads nothing beside the middle: the outermost columns differ.
    found = square(image, 8)
    assert np.abs(found - whole)[:, 1:-1].max() <= 1
