"""Crops, flips and affine maps, against loops and PIL."""

import math

import keras
import numpy as np
import pytest
import references_augment
from PIL import Image
from references_augment import random_images
from references_augment import to_numpy

from alim_keras import backend
from alim_keras import draws
from alim_keras.augment import geometry
from alim_keras.augment import operations
from alim_keras.augment import pixels

RNG = np.random.default_rng(1)


def resample(*args, **kwargs):
    return pixels.from_planes(geometry.resample(*args, **kwargs))


def maps_of(names, magnitudes, size):
    """The maps of operations, one a row, with magnitudes in [0, 1)."""
    numbers = np.array([[operations.OPERATIONS.index(n)] for n in names])
    magnitudes = np.asarray(magnitudes, "float32")[:, None]
    return operations.combined_map(numbers, magnitudes, size)


@pytest.mark.parametrize(
    "size, scale, ratio",
    [
        ((32, 32), (0.2, 1.0), (3 / 4, 4 / 3)),
        ((28, 28), (0.2, 1.0), (3 / 4, 4 / 3)),
        ((8, 8), (0.08, 1.0), (3 / 4, 4 / 3)),
        ((20, 50), (0.2, 1.0), (3 / 4, 4 / 3)),
        ((224, 256), (0.5, 1.0), (1.0, 1.0)),
    ],
)
def test_boxes_follow_the_rule_of_torchvision(size, scale, ratio):
    u = to_numpy(draws.uniform(0, 1, np.arange(300), geometry.CROP_DRAWS, "t"))
    boxes = to_numpy(geometry.random_boxes(u, size, scale, ratio))
    expected = [
        references_augment.crop_box(row.astype("float64"), size, scale, ratio)
        for row in u
    ]
    np.testing.assert_array_equal(boxes, expected)
    left, top, width, height = boxes.T
    assert left.min() == 0
    assert (left + width).max() == size[1]
    assert top.min() == 0
    assert (top + height).max() == size[0]


@pytest.mark.parametrize(
    "size, box",
    [
        # No ratio from 3/4 to 4/3 with a fifth of the area fits into either:
        # 8 high gives round(8 * 4 / 3) = 11 wide, (100 - 11) // 2 = 44.
        ((8, 100), (44, 0, 11, 8)),
        ((100, 8), (0, 44, 8, 11)),
    ],
)
def test_box_that_never_fits_is_the_centre(size, box):
    u = RNG.uniform(0, 1, (5, geometry.CROP_DRAWS)).astype("float32")
    boxes = to_numpy(geometry.random_boxes(u, size))
    np.testing.assert_array_equal(boxes, [box] * 5)


@pytest.mark.parametrize(
    "mode, size",
    [
        ("eager", (8, 8)),
        ("eager", (28, 28)),
        ("eager", (33, 47)),
        ("eager", (224, 224)),
        ("graph", (28, 28)),
        ("xla", (33, 47)),
    ],
)
def test_identity_is_exact(mode, size):
    images = random_images(2, *size, 3)
    box = np.array([[0, 0, size[1], size[0]]] * 2, "float32")
    matrix = np.array([[1, 0, 0, 0, 1, 0]] * 2, "float32")
    flip = np.array([False, True])

    def function(images):
        return resample(images, box=box, flip=flip, matrix=matrix)

    if mode != "eager":
        function = backend.compiled(function, jit_compile=mode == "xla")
    result = to_numpy(function(images))
    np.testing.assert_array_equal(result[0], images[0])
    np.testing.assert_array_equal(result[1], images[1, :, ::-1])


@pytest.mark.parametrize(
    "dtype", ["uint8", "float16", "bfloat16", "float32", "float64"]
)
def test_nothing_to_do_gives_float32(dtype):
    images = keras.ops.cast(random_images(2, 5, 6, 1), dtype)
    result = resample(images)
    assert result.dtype == "float32"
    np.testing.assert_array_equal(result, keras.ops.cast(images, "float32"))


@pytest.mark.parametrize(
    "source, target",
    [((32, 32), (32, 32)), ((28, 20), (9, 31)), ((64, 50), (24, 24))],
)
@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_crop_resize_flip_equals_the_loop(source, target, dtype):
    images = random_images(6, *source, 3).astype(dtype)
    boxes, flips = [], [True, False] * 3
    for _ in range(6):
        w, h = RNG.integers(1, source[1]), RNG.integers(1, source[0])
        left = RNG.integers(0, source[1] - w + 1)
        boxes.append((left, RNG.integers(0, source[0] - h + 1), w, h))
    result = resample(
        images, target, np.array(boxes, "float32"), np.array(flips)
    )
    for image, box, flip, row in zip(
        images, boxes, flips, to_numpy(result), strict=True
    ):
        expected = references_augment.crop_resize(image, box, target, flip)
        np.testing.assert_allclose(row, expected, atol=1e-4)


def test_crop_never_looks_beyond_its_border():
    images = np.full((1, 20, 20, 1), 255, "uint8")
    images[0, 5:12, 3:13] = 7
    box = np.array([[3, 5, 10, 7]], "float32")
    result = to_numpy(resample(images, (40, 40), box))
    np.testing.assert_array_equal(result, np.full((1, 40, 40, 1), 7.0))


def test_enlarged_crop_equals_pil():
    # PIL smooths when it shrinks, but not when it enlarges.
    image = random_images(20, 30).astype("float32")
    cropped = Image.fromarray(image[4:14, 5:25])
    expected = np.asarray(cropped.resize((48, 32), Image.Resampling.BILINEAR))
    box = np.array([[5, 4, 20, 10]], "float32")
    result = to_numpy(resample(image[None, ..., None], (32, 48), box))
    np.testing.assert_allclose(result[0, ..., 0], expected, atol=1e-3)


@pytest.mark.parametrize(
    "name", ["Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"]
)
def test_each_geometric_operation_equals_pil(name):
    size = (24, 32)
    images = random_images(8, *size).astype("float32")
    magnitudes = RNG.uniform(0, 1, 8).astype("float32")
    maps = maps_of([name] * 8, magnitudes, size)
    result = to_numpy(resample(images[..., None], matrix=maps))[..., 0]
    for image, u, row in zip(images, magnitudes, result, strict=True):
        expected = Image.fromarray(image).transform(
            size[::-1],
            Image.Transform.AFFINE,
            references_augment.operation_map(name, float(u), size),
            resample=Image.Resampling.BILINEAR,
        )
        np.testing.assert_allclose(row, np.asarray(expected), atol=0.02)


def test_translation_by_whole_pixels_moves_and_fills_with_black():
    images = random_images(1, 4, 4, 1)
    matrix = np.array([[1, 0, 1, 0, 1, 2]], "float32")
    expected = np.zeros((4, 4))
    expected[:2, :3] = images[0, 2:, 1:, 0]
    result = to_numpy(resample(images, matrix=matrix))
    np.testing.assert_array_equal(result[0, ..., 0], expected)


def test_map_by_hand():
    # A quarter turn about the centre of 4 x 4 pixels, and 0.25 of the width.
    names = ["Rotate", "TranslateX"]
    numbers = np.array([operations.OPERATIONS.index(name) for name in names])
    angles = np.array([math.pi / 2] * 2, "float32")
    shares = np.array([0.25] * 2, "float32")
    maps = operations.affine_maps(numbers, angles, shares, (4, 4))
    expected = [[0, -1, 4, 1, 0, 0], [1, 0, 1, 0, 1, 0]]
    np.testing.assert_allclose(maps, expected, atol=1e-6)
