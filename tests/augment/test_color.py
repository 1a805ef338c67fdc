import itertools

import keras
import numpy as np
import pytest
import references_augment
from PIL import Image
from PIL import ImageDraw
from PIL import ImageEnhance
from PIL import ImageOps

from alim_keras import augment
from alim_keras.augment import jitter
from alim_keras.augment import operations
from alim_keras.augment import planes as planes_lib

RNG = np.random.default_rng(1)
SHAPES = [(8, 8, 1), (28, 28, 1), (32, 32, 3), (40, 30, 3)]


def test_images(shape, count=4):
    """Noise, a smooth picture, a dull one and a flat one."""
    height, width, channels = shape
    ramp = np.linspace(0, 255, height * width).reshape(height, width, 1)
    images = [
        RNG.integers(0, 256, shape),
        np.broadcast_to(ramp, shape) * np.linspace(1, 0.4, channels),
        RNG.integers(90, 140, shape),
        np.full(shape, 77),
    ]
    return np.stack(images[:count]).astype("uint8")


test_images.__test__ = False


def to_pil(image):
    return Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def assert_equals_pil(result, images, pil_function, atol):
    result = to_numpy(result)
    assert result.dtype == "float32"
    assert result.shape == images.shape
    for n, image in enumerate(images):
        expected = np.asarray(pil_function(to_pil(image), n), "float32")
        expected = expected.reshape(image.shape)
        np.testing.assert_allclose(result[n], expected, atol=atol, rtol=0)


# PIL cuts the fraction off (less than 1) after blending, and rounds the other
# end of the blend, a grey image or a mean, by at most 0.5 times |1 - factor|.
@pytest.mark.parametrize(
    "function, enhancer, atol",
    [
        (augment.brightness, ImageEnhance.Brightness, 1.0),
        (augment.contrast, ImageEnhance.Contrast, 2.0),
        (augment.color, ImageEnhance.Color, 1.5),
        (augment.sharpness, ImageEnhance.Sharpness, 1.5),
    ],
)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "factors", [(0.05, 0.95, 0.6, 0.3), (0.0, 1.0, 1.2, 1.4)]
)
def test_blends_equal_pil(function, enhancer, atol, shape, factors):
    images = test_images(shape)
    assert_equals_pil(
        function(images, np.array(factors)),
        images,
        lambda image, n: enhancer(image).enhance(factors[n]),
        atol=atol,
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_autocontrast_equals_pil(shape):
    images = test_images(shape)
    assert_equals_pil(
        augment.autocontrast(images),
        images,
        lambda image, n: ImageOps.autocontrast(image),
        atol=1.0,
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_equalize_equals_pil(shape):
    images = test_images(shape)
    assert_equals_pil(
        augment.equalize(images),
        images,
        lambda image, n: ImageOps.equalize(image),
        atol=0.0,
    )


@pytest.mark.parametrize("shape", [(15, 17), (16, 16), (16, 32)])
def test_equalize_starts_at_255_pixels_below_the_brightest(shape):
    # One pixel of the brightest level, all others of the darkest.
    images = np.full((2, *shape, 3), 10, "uint8")
    images[:, 3, 4] = 200
    assert_equals_pil(
        augment.equalize(images),
        images,
        lambda image, n: ImageOps.equalize(image),
        atol=0.0,
    )


def test_equalize_of_photograph_like_levels_equals_pil():
    images = RNG.normal(120, 25, (6, 96, 96, 3)).clip(0, 255).astype("uint8")
    assert_equals_pil(
        augment.equalize(images),
        images,
        lambda image, n: ImageOps.equalize(image),
        atol=0.0,
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_posterize_equals_pil(shape):
    images = test_images(shape)
    bits = [4, 5, 7, 8]
    assert_equals_pil(
        augment.posterize(images, np.array(bits)),
        images,
        lambda image, n: ImageOps.posterize(image, bits[n]),
        atol=0.0,
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "thresholds", [(0.0, 64.0, 128.0, 77.0), (256.0, 100.5, 20.25, 76.9)]
)
def test_solarize_equals_pil(shape, thresholds):
    images = test_images(shape)
    assert_equals_pil(
        augment.solarize(images, np.array(thresholds, "float32")),
        images,
        lambda image, n: ImageOps.solarize(image, thresholds[n]),
        atol=0.0,
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_grayscale_equals_pil(shape):
    images = test_images(shape)
    assert_equals_pil(
        augment.grayscale(images),
        images,
        lambda image, n: np.broadcast_to(
            np.asarray(image.convert("L"))[..., None], images.shape[1:]
        ),
        atol=0.51,
    )


def test_hue_equals_colorsys():
    images = test_images((10, 12, 3)).astype("float32")
    turns = [-0.1, 0.07, 0.5, -0.37]
    result = to_numpy(augment.hue(images, np.array(turns)))
    for n in range(4):
        expected = references_augment.hue(images[n], turns[n])
        np.testing.assert_allclose(result[n], expected, atol=2e-3)


def test_hue_turns_primaries_into_each_other():
    red = np.array([255.0, 0.0, 0.0]).reshape(1, 1, 1, 3)
    for turns, expected in (
        (1 / 3, [0, 255, 0]),
        (-1 / 3, [0, 0, 255]),
        (1 / 6, [255, 255, 0]),
        (0.0, [255, 0, 0]),
    ):
        result = to_numpy(augment.hue(red, np.array([turns])))
        np.testing.assert_allclose(result[0, 0, 0], expected, atol=1e-3)


@pytest.mark.parametrize("function", [augment.color, augment.hue])
def test_one_channel_has_no_color(function):
    images = test_images((8, 8, 1))
    result = to_numpy(function(images, np.array([0.1, 0.2, 0.3, 0.4])))
    np.testing.assert_array_equal(result, images)


def test_nearly_flat_channel_is_not_stretched():
    # The noise of a resampling, far below one level.
    images = (100 + RNG.uniform(-1e-4, 1e-4, (1, 8, 8, 3))).astype("float32")
    np.testing.assert_allclose(augment.autocontrast(images), images, atol=1e-3)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "strength", [(0.4, 0.4, 0.4, 0.1), (0.4, 0.8, 0.0, 0.0), (0, 0, 0.9, 0.5)]
)
def test_jitter_equals_the_loop(channels, strength):
    images = test_images((6, 7, channels)).astype("float32")
    images = np.tile(images, (12, 1, 1, 1))
    draws = RNG.uniform(0, 1, (48, jitter.JITTER_DRAWS)).astype("float32")
    # Every order of the four operations, twice.
    draws[:, 1] = (np.arange(48) % 24 + 0.5) / 24
    result = planes_lib.from_planes(
        jitter.jitter_planes(planes_lib.to_planes(images), draws, strength, 0.8)
    )
    for image, row, u in zip(images, to_numpy(result), draws, strict=True):
        expected = image
        if u[0] < 0.8:
            u = u.astype("float64")
            expected = references_augment.jitter(
                image.astype("float64"), u[1:], strength
            )
        np.testing.assert_allclose(row, expected, atol=5e-3)


def test_jitter_order_matters():
    # (250, 100, 0): luminance 133.45. Brightness 1.4 first clips red to 255.
    images = np.array([250.0, 100.0, 0.0], "float32").reshape(1, 1, 1, 3)
    orders = list(itertools.permutations(range(4)))
    results = []
    for order in ((0, 1, 2, 3), (2, 1, 0, 3)):
        draws = np.full((1, 6), 1 - 1e-6, "float32")
        draws[0, 0] = 0.0
        draws[0, 1] = (orders.index(order) + 0.5) / 24
        planes = planes_lib.to_planes(images)
        strength = (0.4, 0.0, 0.5, 0.0)
        result = jitter.jitter_planes(planes, draws, strength, 1.0)
        results.append(to_numpy(result).ravel())
    # (255, 140, 0), luminance 158.425, then 1.5 v - 0.5 luminance.
    np.testing.assert_allclose(results[0], [255, 130.7875, 0], atol=0.01)
    # 1.5 v - 66.725 clipped is (255, 83.275, 0), then times 1.4.
    np.testing.assert_allclose(results[1], [255, 116.585, 0], atol=0.01)


@pytest.mark.parametrize("name", operations.OPERATIONS)
@pytest.mark.parametrize("shape", [(8, 8, 1), (20, 22, 3)])
def test_each_operation_of_the_strong_view_equals_the_loop(name, shape):
    images = test_images(shape).astype("float32")
    images[0] += RNG.uniform(-0.4, 0.4, shape)
    images = images.clip(0, 255)
    number = operations.OPERATIONS.index(name)
    magnitude = np.array([0.03, 0.4, 0.77, 0.99], "float32")
    result = operations.apply_operations(
        planes_lib.to_planes(images),
        np.full((4, 1), number),
        magnitude[:, None],
    )
    result = to_numpy(planes_lib.from_planes(result))
    for image, u, row in zip(images, magnitude, result, strict=True):
        expected = references_augment.pixel_operation(
            image.astype("float64"), name, float(u)
        )
        np.testing.assert_allclose(row, expected, atol=2e-3)


def test_operations_are_chosen_per_example_with_equal_chance():
    chosen = to_numpy(operations.choose(RNG.uniform(0, 1, (14000,))))
    counts = np.bincount(chosen, minlength=14)
    assert len(counts) == 14
    # Five standard deviations, sqrt(14000 / 14 * 13 / 14) = 30.5 each.
    assert abs(counts - 1000).max() < 153

    images = test_images((12, 12, 3)).astype("float32")
    images = np.tile(images[:1], (14, 1, 1, 1))
    planes = planes_lib.to_planes(images)
    u = np.full((14, 1), 0.3, "float32")
    numbers = np.arange(14)[:, None]
    together = to_numpy(operations.apply_operations(planes, numbers, u))
    for number in range(14):
        alone = operations.apply_operations(
            planes[:, :1], np.array([[number]]), u[:1]
        )
        np.testing.assert_allclose(together[:, number], to_numpy(alone)[:, 0])


@pytest.mark.parametrize("shape", [(8, 8, 1), (20, 30, 3)])
@pytest.mark.parametrize("largest", [0.5, 1.0])
def test_cutout_equals_the_rectangle_of_pil(shape, largest):
    images = np.zeros((60, *shape), "float32")
    draws = RNG.uniform(0, 1, (60, 3)).astype("float32")
    planes = operations.cutout_planes(
        planes_lib.to_planes(images), draws, largest, (125.0, 123.0, 114.0)
    )
    result = to_numpy(planes_lib.from_planes(planes))
    color = (125, 123, 114) if shape[2] == 3 else (125 + 123 + 114) / 3
    for row, u in zip(result, draws, strict=True):
        box = references_augment.cutout_box(
            u.astype("float64"), shape[:2], largest
        )
        mask = Image.new("L", (shape[1], shape[0]))
        ImageDraw.Draw(mask).rectangle(box, fill=1)
        expected = np.asarray(mask)[..., None] * np.asarray(color, "float32")
        np.testing.assert_allclose(row, expected, rtol=1e-6)


def test_cutout_keeps_its_size_at_the_left_and_is_cut_at_the_right():
    # Side 4 of 8. From 0: columns 0 to 4. From int(7.992 - 2) = 5: 5 to 7.
    draws = np.array([[0.0, 0.5, 1.0], [0.999, 0.5, 1.0]], "float32")
    planes = np.zeros((1, 2, 8, 8), "float32")
    result = to_numpy(operations.cutout_planes(planes, draws, 0.5, (9, 9, 9)))
    np.testing.assert_array_equal(
        result[0, :, 4], [[9, 9, 9, 9, 9, 0, 0, 0], [0, 0, 0, 0, 0, 9, 9, 9]]
    )
