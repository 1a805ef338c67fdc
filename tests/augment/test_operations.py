"""Jitter, the operations of the strong view and its cutout."""

import numpy as np
import pytest
import references_augment
from PIL import Image
from PIL import ImageOps
from references_augment import to_numpy

from alim_keras.augment import operations
from alim_keras.augment import pixels

RNG = np.random.default_rng(1)


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
    numbers = np.full((len(images), 1), operations.OPERATIONS.index(name))
    magnitudes = np.asarray(magnitudes, "float32")[:, None]
    result = operations.apply_operations(
        pixels.to_planes(images),
        numbers,
        operations.values_at(numbers, magnitudes),
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
    for image, row, u in zip(images, to_numpy(result), draws, strict=True):
        expected = image
        if u[0] < 0.8:
            u = u.astype("float64")
            expected = references_augment.jitter(
                image.astype("float64"), u[1:], (0.4, 0.4, 0.4, 0.1)
            )
        np.testing.assert_allclose(row, expected, atol=5e-3)


@pytest.mark.parametrize("name", operations.OPERATIONS)
@pytest.mark.parametrize("shape", [(8, 8, 1), (20, 22, 3)])
def test_each_operation_of_the_strong_view_equals_the_loop(name, shape):
    images = pictures(shape).astype("float32")
    images[0] += RNG.uniform(-0.4, 0.4, shape)
    images = images.clip(0, 255)
    magnitude = np.array([0.03, 0.4, 0.77, 0.99], "float32")
    result = applied(images, name, magnitude)
    for image, u, row in zip(images, magnitude, result, strict=True):
        expected = references_augment.pixel_operation(
            image.astype("float64"), name, float(u)
        )
        np.testing.assert_allclose(row, expected, atol=2e-3)


def test_cutout_keeps_its_size_at_the_left_and_is_cut_at_the_right():
    # Side 4 of 8. From 0: columns 0 to 4. From int(7.992 - 2) = 5: 5 to 7.
    draws = np.array([[0.0, 0.5, 1.0], [0.999, 0.5, 1.0]], "float32")
    planes = np.zeros((1, 2, 8, 8), "float32")
    result = to_numpy(operations.cutout_planes(planes, draws, 0.5))
    np.testing.assert_array_equal(
        result[0, :, 4] > 0,
        [[1, 1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]],
    )
    assert result.max() == np.float32((125 + 123 + 114) / 3)
