"""PiCO's views, against loops over the examples."""

import keras
import numpy as np
import pytest
import references_augment
from references_augment import random_images
from references_augment import to_numpy

from alim_keras import draws
from alim_keras.augment import OPERATIONS
from alim_keras.augment import Views

NOTHING = {
    "crop_scale": None,
    "flip": 0.0,
    "jitter": False,
    "num_operations": 0,
    "cutout": 0.0,
}
CHANNELS = [
    pytest.param(1, marks=pytest.mark.tensorflow("on JAX colour is enough")),
    3,
]


@pytest.fixture(params=["weak", "strong"])
def view(request):
    return lambda views, *args, **kwargs: to_numpy(
        getattr(views, request.param)(*args, **kwargs)
    )


@pytest.mark.parametrize("shape", [(8, 8, 1), (32, 24, 3)])
def test_nothing_switched_on_gives_the_image_back(view, shape):
    images = random_images(3, *shape)
    result = view(Views(**NOTHING), images, 0, np.arange(3))
    np.testing.assert_array_equal(result, images)


@pytest.mark.parametrize("image_size", [(224, 224), (32, 48)])
def test_larger_images_are_resized(view, image_size):
    images = random_images(2, 256, 250, 3)
    views = Views(image_size=image_size, **NOTHING)
    result = view(views, images, 0, np.arange(2))
    expected = keras.ops.image.resize(images.astype("float32"), image_size)
    # tf.image keeps the place as one float: at 250 its last bit is 1.5e-5,
    # which is worth 255 * 1.5e-5 = 0.004 for each direction.
    np.testing.assert_allclose(result, expected, atol=0.01)


@pytest.mark.parametrize("channels", CHANNELS)
def test_weak_view_equals_the_loop(channels):
    views = Views(image_size=(12, 10), seed=3)
    images = random_images(24, 14, 16, channels)
    result = to_numpy(views.weak(images, 7, np.arange(24)))
    u = to_numpy(draws.uniform(3, 7, np.arange(24), 30, "weak"))
    for image, row, u in zip(images, result, u.astype("float64"), strict=True):
        box = references_augment.crop_box(
            u[:22], (14, 16), (0.2, 1.0), (3 / 4, 4 / 3)
        )
        expected = references_augment.affine(image, box, (12, 10), u[22] < 0.5)
        if u[23] < 0.8:
            expected = references_augment.jitter(
                expected, u[24:29], (0.4, 0.4, 0.4, 0.1)
            )
        if u[29] < 0.2:
            expected = references_augment.gray(expected)[..., None]
        expected = np.broadcast_to(expected, row.shape)
        np.testing.assert_allclose(row, expected, atol=0.01)


@pytest.mark.parametrize("channels", CHANNELS)
def test_strong_view_equals_the_loop(channels):
    # Whole levels after the crop, so that Posterize, Solarize and Equalize
    # read the same level on both sides of the comparison.
    views = Views(seed=3, cutout=0.3, crop_scale=None)
    size = (16, 20)
    images = random_images(60, *size, channels)
    result = to_numpy(views.strong(images, 7, np.arange(60)))
    u = to_numpy(draws.uniform(3, 7, np.arange(60), 32, "strong"))
    seen = set()
    for image, row, u in zip(images, result, u.astype("float64"), strict=True):
        names = [OPERATIONS[int(14 * value)] for value in u[26:29]]
        seen.update(names)
        pairs = list(zip(names, u[29:], strict=True))
        maps = [
            references_augment.operation_map(name, value, size)
            for name, value in pairs
            if name.startswith(("Rotate", "Shear", "Translate"))
        ]
        expected = references_augment.affine(
            image, (0, 0, size[1], size[0]), size, u[22] < 0.5, maps
        )
        for name, value in pairs:
            expected = references_augment.pixel_operation(expected, name, value)
        left, top, right, bottom = references_augment.cutout_box(
            u[23:26], size, 0.3
        )
        color = (125, 123, 114) if channels == 3 else (125 + 123 + 114) / 3
        expected[top : bottom + 1, left : right + 1] = color
        wrong = abs(row - expected) > 0.05
        # A level that ends in .5 but for rounding may fall either way.
        assert wrong.mean() < 0.01, names
    assert seen == set(OPERATIONS)
