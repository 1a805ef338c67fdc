"""CRDPLL's views and AutoAugment's policy, against loops."""

import numpy as np
import pytest
import references_augment as loops
from references_augment import random_images
from references_augment import smooth_images
from references_augment import to_numpy

from alim_keras import draws
from alim_keras.augment import AutoAugmentViews
from alim_keras.augment import autoaugment
from alim_keras.augment import pixels
from alim_keras.errors import ConfigError

GEOMETRIC = ("Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY")
PAIRS = autoaugment.SUB_POLICIES
on_tensorflow = pytest.mark.tensorflow("on JAX its shapes take long to compile")


def test_the_policy_is_the_published_one():
    assert len(PAIRS) == 25
    # The first, one with a probability of 0, and the last.
    assert PAIRS[0] == ("Invert", 0.1, 7, "Contrast", 0.2, 6)
    assert PAIRS[14] == ("Solarize", 0.5, 2, "Invert", 0.0, 3)
    assert PAIRS[24] == ("TranslateY", 0.7, 9, "AutoContrast", 0.9, 1)
    names = [name for pair in PAIRS for name in pair[::3]]
    assert names.count("Equalize") == 9 and names.count("Rotate") == 1


def one_by_one(image, steps):
    """A sub-policy in its own order, on floats, one operation at a time."""
    image = image.astype("float64")
    size = image.shape[:2]
    whole = (0, 0, size[1], size[0])
    maps = []

    def moved(image):
        if not maps:
            return image
        # `affine` is black outside: of a white image, 0 is outside. What the
        # second of two maps uncovers is outside as well.
        white = np.full((*size, 1), 255.0)
        inside = np.ones((*size, 1), bool)
        for some in (maps, maps[1:]):
            inside &= loops.affine(white, whole, size, 0, some) > 0
        result = loops.affine(image, whole, size, False, maps)
        return np.where(inside, result, 128.0)

    for name, level, sign in steps:
        if name in GEOMETRIC:
            value = sign * level / 9
            if name.startswith("Translate"):
                # The reference moves by 0.3 of the size.
                value *= 150 / 331 / 0.3
            maps.append(loops.operation_map(name, (value + 1) / 2, size))
            continue
        image = moved(image)
        maps.clear()
        # The magnitude with which the reference does the same.
        u = {
            "Invert": 0.0,
            "Solarize": 1 - level / 9,
            "Posterize": (round(8 - 4 * level / 9) - 4) / 4,
        }.get(name, (0.95 + sign * 0.9 * level / 9) / 0.9)
        name = "Solarize" if name == "Invert" else name
        image = loops.pixel_operation(image, name, u)
    return moved(image)


def assert_equals_loop(row, image, u):
    """Holds a row to the loop with the policy's five numbers."""
    pair = PAIRS[int(25 * u[0])]
    steps = [
        (pair[3 * i], pair[3 * i + 2], -1 if u[3 + i] < 0.5 else 1)
        for i in (0, 1)
        if u[1 + i] < pair[3 * i + 1]
    ]
    wrong = abs(row - one_by_one(image, steps)) > 0.05
    # A level that ends in .5 but for rounding may fall either way; and Color
    # with a factor above 1 is cut off before a pixel is interpolated by the
    # policy, and after it here.
    limit = 0.15 if pair[0] == "Color" and pair[3] in GEOMETRIC else 0.01
    assert wrong.mean() <= limit, pair


@on_tensorflow
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("signs", [(0.25, 0.25), (0.75, 0.75), (0.25, 0.75)])
def test_both_operations_equal_the_loop(signs, channels):
    images = smooth_images(len(PAIRS), 20, 18, channels)
    u = [[(n + 0.5) / 25, 0.0, 0.0, *signs] for n in range(len(PAIRS))]
    planes = pixels.to_planes(images)
    planes = autoaugment.apply_policy(planes, np.array(u, "float32"))
    result = to_numpy(pixels.from_planes(planes))
    for image, row, u in zip(images, result, u, strict=True):
        assert_equals_loop(row, image, u)


def reflected(image, padding, left, top, flip):
    image = image[:, ::-1] if flip else image
    padded = np.pad(image, [(padding, padding)] * 2 + [(0, 0)], "reflect")
    height, width = image.shape[:2]
    return padded[top : top + height, left : left + width]


@pytest.mark.parametrize(
    "shape, padding",
    [
        ((32, 32, 3), 4),
        pytest.param((9, 11, 1), 8, marks=on_tensorflow),
        pytest.param((8, 8, 1), 0, marks=on_tensorflow),
    ],
)
def test_weak_view_is_a_crop_with_a_reflected_margin(shape, padding):
    views = AutoAugmentViews(seed=3, padding=padding)
    images = random_images(40, *shape)
    result = to_numpy(views.weak(images, 7, np.arange(40)))
    assert result.dtype == "float32"
    u = to_numpy(draws.uniform(3, 7, np.arange(40), 3, "weak"))
    seen = set()
    for image, row, u in zip(images, result, u, strict=True):
        left, top = (int(value * (2 * padding + 1)) for value in u[:2])
        seen.add(left)
        expected = reflected(image, padding, left, top, u[2] < 0.5)
        np.testing.assert_array_equal(row, expected)
    assert seen == set(range(2 * padding + 1)) or padding == 8


@on_tensorflow
def test_strong_view_is_crop_cutout_and_policy():
    views = AutoAugmentViews(seed=3, padding=3, cutout=7)
    size = (16, 20)
    images = smooth_images(60, *size, 3)
    result = to_numpy(views.strong(images, 7, np.arange(60)))
    u = to_numpy(draws.uniform(3, 7, np.arange(60), 10, "strong"))
    cut = []
    for image, row, u in zip(images, result, u.astype("float64"), strict=True):
        left, top = (int(value * 7) for value in u[:2])
        image = reflected(image, 3, left, top, u[2] < 0.5).copy()
        x, y = int(u[3] * size[1]), int(u[4] * size[0])
        # An odd side counts as the even one below it: 3 to each side.
        image[max(y - 3, 0) : y + 3, max(x - 3, 0) : x + 3] = 0
        cut.append((image == 0).all(-1).sum())
        assert_equals_loop(row, image, u[5:])
    assert max(cut) >= 36 and min(cut) < 36


def test_padding_that_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="8x9 pixels.*Received: padding=8"):
        AutoAugmentViews(padding=8).weak(np.zeros((1, 8, 9, 1)), 0, [0])
