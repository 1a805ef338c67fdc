"""Where pixels come from, jitter, operations and cutout: loops and PIL."""

import numpy as np
import pytest
import references_augment as loops
from PIL import Image
from PIL import ImageOps
from references_augment import random_images
from references_augment import to_numpy

from alim_keras import backend
from alim_keras import draws
from alim_keras.augment import operations
from alim_keras.augment import pixels

RNG = np.random.default_rng(1)


def chosen(name, magnitudes):
    """One operation for each example, and its values at the magnitudes."""
    numbers = np.full((len(magnitudes), 1), operations.OPERATIONS.index(name))
    magnitudes = np.asarray(magnitudes, "float32")[:, None]
    return numbers, operations.values_at(numbers, magnitudes)


def resample(*args, **kwargs):
    return pixels.from_planes(pixels.resample(*args, **kwargs))


@pytest.mark.parametrize(
    "size, scale, box",
    [
        ((32, 32), (0.2, 1.0), None),
        ((8, 8), (0.08, 1.0), None),
        ((20, 50), (0.2, 1.0), None),
        ((224, 256), (0.5, 1.0), None),
        # No ratio from 3/4 to 4/3 with a fifth of the area fits into either:
        # 8 high gives round(8 * 4 / 3) = 11 wide, (100 - 11) // 2 = 44.
        ((8, 100), (0.2, 1.0), (44, 0, 11, 8)),
        ((100, 8), (0.2, 1.0), (0, 44, 8, 11)),
    ],
)
def test_boxes_follow_the_rule_of_torchvision(size, scale, box):
    u = to_numpy(draws.uniform(0, 1, np.arange(300), pixels.CROP_DRAWS, "t"))
    expected = [loops.crop_box(u, size, scale) for u in u.astype("float64")]
    boxes = to_numpy(pixels.random_boxes(u, size, scale))
    np.testing.assert_array_equal(boxes, expected)
    if box is not None:
        np.testing.assert_array_equal(boxes, [box] * 300)


@pytest.mark.parametrize(
    "mode, size",
    [("eager", (224, 224)), ("graph", (28, 28)), ("xla", (33, 47))],
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
        expected = loops.affine(image, box, target, flip)
        np.testing.assert_allclose(row, expected, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"]
)
def test_each_geometric_operation_equals_pil(name):
    size = (24, 32)
    images = random_images(8, *size).astype("float32")
    magnitudes = RNG.uniform(0, 1, 8).astype("float32")
    maps = operations.affine_maps(*chosen(name, magnitudes), size)[:, 0]
    result = to_numpy(resample(images[..., None], matrix=maps))[..., 0]
    for image, u, row in zip(images, magnitudes, result, strict=True):
        expected = Image.fromarray(image).transform(
            size[::-1],
            Image.Transform.AFFINE,
            loops.operation_map(name, float(u), size),
            resample=Image.Resampling.BILINEAR,
        )
        np.testing.assert_allclose(row, np.asarray(expected), atol=0.02)


def pictures(shape):
    """Noise, a smooth picture, a dull one and a flat one."""
    height, width, channels = shape
    ramp = np.linspace(0, 255, height * width).reshape(height, width, 1)
    images = [
        RNG.integers(0, 256, shape),
        np.broadcast_to(ramp, shape) * np.linspace(1, 0.4, channels),
        RNG.integers(90, 140, shape),
        np.full(shape, 77),
    ]
    return np.stack(images).astype("uint8")


def applied(images, name, magnitudes):
    """One operation on channels-last images."""
    result = operations.apply_operations(
        pixels.to_planes(images), *chosen(name, magnitudes)
    )
    return to_numpy(pixels.from_planes(result))


@pytest.mark.parametrize("shape", [(15, 17), (16, 16), (16, 32)])
def test_equalize_starts_at_255_pixels_below_the_brightest(shape):
    # One pixel of the brightest level, all others of the darkest.
    images = np.full((2, *shape, 3), 10, "uint8")
    images[:, 3, 4] = 200
    result = applied(images, "Equalize", [0.5, 0.5])
    expected = np.asarray(ImageOps.equalize(Image.fromarray(images[0])))
    np.testing.assert_array_equal(result, [expected] * 2)


def test_nearly_flat_channel_is_not_stretched():
    # The noise of a resampling, far below one level.
    images = (100 + RNG.uniform(-1e-4, 1e-4, (1, 8, 8, 3))).astype("float32")
    result = applied(images, "AutoContrast", [0.5])
    np.testing.assert_allclose(result, images, atol=1e-3)


@pytest.mark.parametrize("channels", [1, 3])
def test_jitter_equals_the_loop(channels):
    images = pictures((6, 7, channels)).astype("float32")
    images = np.tile(images, (12, 1, 1, 1))
    draws = RNG.uniform(0, 1, (48, pixels.JITTER_DRAWS)).astype("float32")
    # Every order of the four operations, twice.
    draws[:, 1] = (np.arange(48) % 24 + 0.5) / 24
    result = pixels.from_planes(pixels.jitter(pixels.to_planes(images), draws))
    images, draws = images.astype("float64"), draws.astype("float64")
    for image, row, u in zip(images, to_numpy(result), draws, strict=True):
        np.testing.assert_allclose(row, loops.jitter(image, u), atol=5e-3)


@pytest.mark.parametrize("name", operations.OPERATIONS)
@pytest.mark.parametrize("shape", [(8, 8, 1), (20, 22, 3)])
def test_each_operation_of_the_strong_view_equals_the_loop(name, shape):
    images = pictures(shape).astype("float32")
    images[0] += RNG.uniform(-0.4, 0.4, shape)
    images = images.clip(0, 255)
    magnitude = np.array([0.03, 0.4, 0.77, 0.99], "float32")
    result = applied(images, name, magnitude)
    images = images.astype("float64")
    for image, u, row in zip(images, magnitude, result, strict=True):
        expected = loops.pixel_operation(image, name, float(u))
        np.testing.assert_allclose(row, expected, atol=2e-3)
