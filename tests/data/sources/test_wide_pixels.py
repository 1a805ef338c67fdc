"""Pixels of more than eight bits: one rule for all images of a data set."""

import io

import numpy as np
import PIL.Image
import pytest

from alim_keras.data.sources import header_worker
from alim_keras.data.sources import image_files
from alim_keras.errors import DataError

TYPES = {"F": "float32", "I": "int32"}


def saved(image, kind):
    content = io.BytesIO()
    image.save(content, kind)
    return content.getvalue()


@pytest.mark.parametrize(
    "mode, levels, kind",
    [
        ("F", [0.0, 0.2, 1.0], "floats"),
        ("F", [0.0, 99.6, 255.0], "floats"),
        ("I", [0, 7, 255], "integers of 32 bits"),
        ("I", [0, 0x1234, 65535], "integers of 32 bits"),
    ],
)
def test_numbers_without_a_known_range(mode, levels, kind):
    content = saved(
        PIL.Image.fromarray(np.array([levels] * 3, TYPES[mode])), "TIFF"
    )
    with pytest.raises(
        DataError, match=f"pixels are {kind}, save it with 8 or 16 bits"
    ):
        image_files.decode(content, 3, 1)
    assert kind in header_worker.describe(content).reason


def test_16_bits_are_scaled_without_a_look_at_them():
    # A dark picture stays dark, whatever Pillow calls its mode.
    for kind in ("PNG", "TIFF"):
        levels = np.full((3, 3), 200, np.uint16)
        levels[0] = (0x0FF, 0x100, 0x3FF)
        content = saved(PIL.Image.fromarray(levels), kind)
        found = image_files.decode(content, 3, 1)[..., 0]
        assert found.tolist() == [[0, 1, 3], [0, 0, 0], [0, 0, 0]]
    image = PIL.Image.new("I", (1, 1))
    for kind, expected in (("PNG", True), ("PPM", True), ("TIFF", False)):
        image.format = kind
        assert header_worker.has_16_bits(image) == expected
