"""Decoding every kind of image file that people have."""

import io
import struct
import tracemalloc
import warnings

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest

from alim_keras.data.images import decode
from alim_keras.data.images import scan
from alim_keras.data.images import square
from alim_keras.errors import DataError


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


# Kinds of pixels; each value is worked out by hand.


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


# Orientation, sizes.


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


# What is no image.


def refused(source):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError) as found:
            decode(source, 8)
    text = str(found.value)
    assert "\n" not in text
    name, why = text.split(": cannot be read as an image: ")
    why, remedy = why.split("; ")
    assert remedy == "mend it, or leave its item out"
    return name, why


def test_a_whole_picture_keeps_its_form_and_grows_no_larger():
    image = PIL.Image.new("RGB", (80, 20), "red")
    image.paste("blue", (40, 0, 80, 20))
    found = decode(saved(image), 40, whole=True)
    assert found.shape == (10, 40, 3)
    assert found[5, 2].tolist() == [255, 0, 0]
    assert found[5, 37].tolist() == [0, 0, 255]
    assert decode(saved(image), 400, whole=True).shape == (20, 80, 3)
    assert decode(saved(image), 400, 1, whole=True).shape[2] == 1


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


TYPES = {"F": "float32", "I": "int32"}


@pytest.mark.parametrize(
    "mode, levels, kind",
    [("F", [0.0, 0.2], "floats"), ("I", [0, 7], "integers of 32 bits")],
)
def test_numbers_without_a_known_range(mode, levels, kind):
    content = saved(
        PIL.Image.fromarray(np.array([levels], TYPES[mode])), "TIFF"
    )
    with pytest.raises(DataError, match=f"pixels are {kind}, save it with 8"):
        decode(content, 3, 1)
    assert kind in scan([content])["problem"][0]


# Sizes.


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
    stream = np.random.default_rng(0)
    pixels = stream.integers(0, 256, (20, 1000, 3), "uint8")
    image = PIL.Image.fromarray(pixels)
    whole = image.resize((400, 8), PIL.Image.Resampling.BILINEAR)
    whole = np.asarray(whole.crop((196, 0, 204, 8))).astype(int)
    # It reads nothing beside the middle: the outermost columns differ.
    found = square(image, 8)
    assert np.abs(found - whole)[:, 1:-1].max() <= 1
