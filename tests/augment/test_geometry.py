import keras
import numpy as np
import pytest
import references_augment
from PIL import Image

from alim_keras import backend
from alim_keras import draws
from alim_keras.augment import geometry
from alim_keras.augment import operations
from alim_keras.augment import resample

RNG = np.random.default_rng(0)


def random_images(*shape):
    return RNG.integers(0, 256, shape).astype("uint8")


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


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


def test_full_area_and_ratio_one_is_the_whole_image():
    u = RNG.uniform(0, 1, (5, geometry.CROP_DRAWS)).astype("float32")
    boxes = to_numpy(geometry.random_boxes(u, (28, 28), (1, 1), (1, 1)))
    np.testing.assert_array_equal(boxes, [(0, 0, 28, 28)] * 5)


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


@pytest.mark.parametrize("target", [(40, 40), (64, 48), (17, 23)])
def test_plain_resize_equals_that_of_the_backend(target):
    images = random_images(3, 32, 32, 3)
    expected = keras.ops.image.resize(images.astype("float32"), target)
    np.testing.assert_allclose(resample(images, target), expected, atol=1e-3)


def test_enlarged_crop_equals_pil():
    # PIL smooths when it shrinks, but not when it enlarges.
    image = random_images(20, 30).astype("float32")
    cropped = Image.fromarray(image[4:14, 5:25])
    expected = np.asarray(cropped.resize((48, 32), Image.Resampling.BILINEAR))
    box = np.array([[5, 4, 20, 10]], "float32")
    result = to_numpy(resample(image[None, ..., None], (32, 48), box))
    np.testing.assert_allclose(result[0, ..., 0], expected, atol=1e-3)


def pil_map(image, matrix):
    size = image.shape[1], image.shape[0]
    return np.asarray(
        Image.fromarray(image).transform(
            size,
            Image.Transform.AFFINE,
            matrix,
            resample=Image.Resampling.BILINEAR,
        )
    )


@pytest.mark.parametrize(
    "name", ["Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"]
)
def test_each_geometric_operation_equals_pil(name):
    size = (24, 32)
    images = random_images(8, *size).astype("float32")
    magnitude = RNG.uniform(0, 1, 8).astype("float32")
    number = operations.OPERATIONS.index(name)
    maps = operations.affine_maps(np.full(8, number), magnitude, size)
    result = to_numpy(resample(images[..., None], matrix=maps))[..., 0]
    for image, u, row in zip(images, magnitude, result, strict=True):
        matrix = references_augment.operation_map(name, float(u), size)
        np.testing.assert_allclose(row, pil_map(image, matrix), atol=0.02)


def test_rotate_equals_the_rotate_of_pil():
    image = random_images(32, 32).astype("float32")
    number = operations.OPERATIONS.index("Rotate")
    # 30 degrees times 2 * 0.9 - 1 is 24 degrees, counter-clockwise.
    maps = operations.affine_maps(
        np.array([number]), np.float32([0.9]), (32, 32)
    )
    result = to_numpy(resample(image[None, ..., None], matrix=maps))
    expected = Image.fromarray(image).rotate(24, Image.Resampling.BILINEAR)
    np.testing.assert_allclose(result[0, ..., 0], expected, atol=0.02)


def test_translation_by_whole_pixels_moves_and_fills_with_black():
    images = random_images(1, 4, 4, 1)
    matrix = np.array([[1, 0, 1, 0, 1, 2]], "float32")
    expected = np.zeros((4, 4))
    expected[:2, :3] = images[0, 2:, 1:, 0]
    result = to_numpy(resample(images, matrix=matrix))
    np.testing.assert_array_equal(result[0, ..., 0], expected)


def test_pixel_operations_have_the_identity_map():
    numbers = [
        number
        for number, name in enumerate(operations.OPERATIONS)
        if not name.startswith(("Rotate", "Shear", "Translate"))
    ]
    maps = operations.affine_maps(
        np.array(numbers), np.full(len(numbers), 0.8, "float32"), (28, 28)
    )
    np.testing.assert_array_equal(maps, [[1, 0, 0, 0, 1, 0]] * 9)


def test_maps_compose_in_the_drawn_order():
    size, names = (16, 20), ("TranslateX", "Rotate", "ShearY")
    images = random_images(4, *size, 3)
    box = np.array([[2, 1, 17, 13]] * 4, "float32")
    flip = np.array([False, True] * 2)
    numbers = [operations.OPERATIONS.index(name) for name in names]
    magnitudes = RNG.uniform(0, 1, (4, 3)).astype("float32")
    matrix = operations.combined_map(np.array([numbers] * 4), magnitudes, size)
    result = to_numpy(resample(images, None, box, flip, matrix))
    for n in range(4):
        maps = [
            references_augment.operation_map(name, float(u), size)
            for name, u in zip(names, magnitudes[n], strict=True)
        ]
        expected = references_augment.affine(
            images[n], (2, 1, 17, 13), size, flip[n], maps
        )
        np.testing.assert_allclose(result[n], expected, atol=0.02)
