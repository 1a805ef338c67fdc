"""Crops, flips and affine maps, against loops and PIL."""

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


@pytest.mark.parametrize(
    "size, scale",
    [
        ((32, 32), (0.2, 1.0)),
        ((8, 8), (0.08, 1.0)),
        ((20, 50), (0.2, 1.0)),
        ((224, 256), (0.5, 1.0)),
    ],
)
def test_boxes_follow_the_rule_of_torchvision(size, scale):
    u = to_numpy(draws.uniform(0, 1, np.arange(300), geometry.CROP_DRAWS, "t"))
    boxes = to_numpy(geometry.random_boxes(u, size, scale))
    expected = [
        references_augment.crop_box(
            row.astype("float64"), size, scale, (3 / 4, 4 / 3)
        )
        for row in u
    ]
    np.testing.assert_array_equal(boxes, expected)
    left, top, width, height = boxes.T
    assert left.min() == top.min() == 0
    assert ((left + width).max(), (top + height).max()) == size[::-1]


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
    boxes = to_numpy(geometry.random_boxes(u, size, (0.2, 1.0)))
    np.testing.assert_array_equal(boxes, [box] * 5)


@pytest.mark.parametrize(
    "mode, size",
    [
        ("eager", (28, 28)),
        ("eager", (224, 224)),
        ("graph", (28, 28)),
        ("xla", (33, 47)),
    ],
)
def test_identity_is_exact(mode, size):
    images = random_images(2, *size, 3)
    box = np.array([[0, 0, size[1], size[0]]] * 2, "float32")
    matrix = np.array([np.eye(3)] * 2, "float32")
    flip = np.array([False, True])

    def function(images):
        return resample(images, box=box, flip=flip, matrix=matrix)

    if mode != "eager":
        function = backend.compiled(function, jit_compile=mode == "xla")
    result = to_numpy(function(images))
    np.testing.assert_array_equal(result[0], images[0])
    np.testing.assert_array_equal(result[1], images[1, :, ::-1])


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
        expected = references_augment.affine(image, box, target, flip)
        np.testing.assert_allclose(row, expected, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"]
)
def test_each_geometric_operation_equals_pil(name):
    size = (24, 32)
    images = random_images(8, *size).astype("float32")
    magnitudes = RNG.uniform(0, 1, (8, 1)).astype("float32")
    numbers = np.full((8, 1), operations.OPERATIONS.index(name))
    values = operations.values_at(numbers, magnitudes)
    maps = operations.combined_map(numbers, values, size)
    result = to_numpy(resample(images[..., None], matrix=maps))[..., 0]
    for image, u, row in zip(images, magnitudes[:, 0], result, strict=True):
        expected = Image.fromarray(image).transform(
            size[::-1],
            Image.Transform.AFFINE,
            references_augment.operation_map(name, float(u), size),
            resample=Image.Resampling.BILINEAR,
        )
        np.testing.assert_allclose(row, np.asarray(expected), atol=0.02)
