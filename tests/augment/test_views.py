import json

import keras
import numpy as np
import pytest
import references_augment

from alim_keras import backend
from alim_keras import draws
from alim_keras.augment import OPERATIONS
from alim_keras.augment import Views
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

RNG = np.random.default_rng(2)
NOTHING = {
    "crop_scale": None,
    "flip": 0.0,
    "jitter": None,
    "grayscale_probability": 0.0,
    "num_operations": 0,
    "cutout": 0.0,
}


CHANNELS = [
    pytest.param(1, marks=pytest.mark.tensorflow("on JAX colour is enough")),
    3,
]


def random_images(*shape):
    return RNG.integers(0, 256, shape).astype("uint8")


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


@pytest.fixture(params=["weak", "strong"])
def view(request):
    return lambda views, *args, **kwargs: to_numpy(
        getattr(views, request.param)(*args, **kwargs)
    )


@pytest.mark.tensorflow("on JAX its many shapes take minutes to compile")
@pytest.mark.parametrize("shape", [(8, 8, 1), (28, 28, 1), (32, 32, 3)])
def test_shape_dtype_and_range(view, shape):
    images = random_images(40, *shape)
    result = view(Views(), images, 3, np.arange(40))
    assert result.shape == images.shape
    assert result.dtype == "float32"
    assert result.min() >= 0
    assert result.max() <= 255


@pytest.mark.tensorflow("on JAX its many shapes take minutes to compile")
def test_view_of_an_example_does_not_depend_on_its_batch(view):
    views = Views(seed=5)
    images, index = random_images(12, 10, 11, 3), np.arange(12) * 1000
    result = view(views, images, 4, index)
    order = RNG.permutation(12)
    permuted = view(views, images[order], 4, index[order])
    np.testing.assert_array_equal(permuted, result[order])
    for rows in (slice(0, 1), slice(1, 6), slice(6, 12)):
        part = view(views, images[rows], 4, index[rows])
        np.testing.assert_array_equal(part, result[rows])


@pytest.mark.tensorflow("on JAX its many shapes take minutes to compile")
def test_view_changes_with_epoch_index_seed_and_stream(view):
    images = np.repeat(random_images(1, 16, 16, 3), 20, axis=0)
    index = np.arange(20)
    first = view(Views(seed=1), images, 0, index)
    again = view(Views(seed=1), images, 0, index)
    np.testing.assert_array_equal(first, again)

    others = [
        view(Views(seed=1), images, 1, index),
        view(Views(seed=1), images, 0, index + 20),
        view(Views(seed=2), images, 0, index),
        view(Views(seed=1), images, 0, index, stream="second"),
    ]
    for other in others:
        assert (abs(first - other).max((1, 2, 3)) > 1).all()
    assert len(np.unique(first.reshape(20, -1), axis=0)) == 20


@pytest.mark.tensorflow("on JAX its many shapes take minutes to compile")
def test_weak_and_strong_draw_their_own_crops():
    only_crop = Views(**{**NOTHING, "crop_scale": (0.2, 1.0)})
    images, index = random_images(10, 16, 16, 3), np.arange(10)
    weak = to_numpy(only_crop.weak(images, 0, index))
    strong = to_numpy(only_crop.strong(images, 0, index))
    assert (abs(weak - strong).max((1, 2, 3)) > 1).all()
    same = to_numpy(only_crop.strong(images, 0, index, stream="weak"))
    np.testing.assert_array_equal(weak, same)


@pytest.mark.parametrize("shape", [(8, 8, 1), (32, 24, 3)])
def test_nothing_switched_on_gives_the_image_back(view, shape):
    images = random_images(3, *shape)
    result = view(Views(**NOTHING), images, 0, np.arange(3))
    np.testing.assert_array_equal(result, images)


def test_what_is_switched_off_does_not_happen(view):
    images = random_images(50, 6, 6, 3)
    flips = view(Views(**{**NOTHING, "flip": 0.5}), images, 0, np.arange(50))
    mirrored = (flips == images[:, :, ::-1]).all((1, 2, 3))
    kept = (flips == images).all((1, 2, 3))
    assert (mirrored | kept).all()
    # Five standard deviations around 25: sqrt(50) / 2 = 3.5.
    assert 7 < mirrored.sum() < 43


@pytest.mark.parametrize("image_size", [(224, 224), (32, 48)])
def test_larger_images_are_resized(view, image_size):
    images = random_images(2, 256, 250, 3)
    views = Views(image_size=image_size, **NOTHING)
    result = view(views, images, 0, np.arange(2))
    expected = keras.ops.image.resize(images.astype("float32"), image_size)
    # tf.image keeps the place as one float: at 250 its last bit is 1.5e-5,
    # which is worth 255 * 1.5e-5 = 0.004 for each direction.
    np.testing.assert_allclose(result, expected, atol=0.01)


def test_grayscale_probability():
    views = Views(**{**NOTHING, "grayscale_probability": 0.2})
    images = random_images(500, 2, 2, 3)
    result = to_numpy(views.weak(images, 0, np.arange(500)))
    gray = (result == result[..., :1]).all((1, 2, 3))
    # Five standard deviations around 100: sqrt(500 * 0.2 * 0.8) = 8.9.
    assert 55 < gray.sum() < 145
    np.testing.assert_array_equal(result[~gray], images[~gray])
    expected = images[gray] @ references_augment.LUMA
    np.testing.assert_allclose(result[gray][..., 0], expected, rtol=1e-5)


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
        expected = references_augment.crop_resize(
            image, box, (12, 10), u[22] < 0.5
        )
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
    views = Views(seed=3, cutout=0.3)
    # Whole levels after the crop, so that Posterize, Solarize and Equalize
    # read the same level on both sides of the comparison.
    views.crop_scale = None
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


SIZES = [
    ((8, 8, 1), None, 64),
    ((28, 28, 1), None, 32),
    ((32, 32, 3), None, 32),
    ((224, 224, 3), None, 3),
    ((256, 256, 3), (224, 224), 3),
]


def smooth_images(shape, count):
    """Pictures of blobs: neighbouring pixels are similar, as in photographs."""
    images = random_images(count, 7, 7, shape[2]).astype("float32")
    images = keras.ops.image.resize(images, shape[:2], "bicubic")
    return np.clip(to_numpy(images), 0, 255).astype("uint8")


def both(views):
    def function(images, epoch, index):
        return (
            views.weak(images, epoch, index),
            views.strong(images, epoch, index),
        )

    return function


def assert_same_views(results, expected):
    """Weak and strong views that are equal to 1e-4 of the pixels' range."""
    for one, two in zip(results, expected, strict=True):
        assert one.shape == two.shape
    weak, strong = (
        (abs(to_numpy(one) - to_numpy(two)) > 255 * 1e-4).mean()
        for one, two in zip(results, expected, strict=True)
    )
    assert weak == 0
    # A compiler rounds a product and a sum once where others round twice, so
    # a level that Posterize, Solarize or Equalize rounds can fall the other
    # way: one pixel in a thousand may.
    assert strong <= 1e-3


@pytest.mark.tensorflow("graphs of open shape, and tf.data")
@pytest.mark.parametrize("shape, image_size, count", SIZES)
def test_graph_and_tf_data_give_the_numbers_of_eager(shape, image_size, count):
    import tensorflow as tf

    function = both(Views(image_size=image_size, seed=9))
    images, index = smooth_images(shape, count), np.arange(count)
    eager = function(images, 2, index)

    specs = [
        tf.TensorSpec((None, *shape), "uint8"),
        tf.TensorSpec((), "int64"),
        tf.TensorSpec((None,), "int64"),
    ]
    graph = tf.function(function, input_signature=specs)
    results = graph(images, np.int64(2), index)
    assert_same_views(results, eager)

    data = tf.data.Dataset.from_tensor_slices((images, index)).batch(2)
    data = data.map(lambda *batch: graph(batch[0], np.int64(2), batch[1]), 2)
    batches = list(data.as_numpy_iterator())
    results = [np.concatenate(part) for part in zip(*batches, strict=True)]
    assert_same_views(results, eager)


@pytest.mark.parametrize(
    "shape, image_size, count",
    [
        pytest.param(*SIZES[0], marks=pytest.mark.slow),
        SIZES[1],
        pytest.param(
            *SIZES[2], marks=pytest.mark.tensorflow("on JAX one size is enough")
        ),
        pytest.param(*SIZES[3], marks=pytest.mark.slow),
        pytest.param(*SIZES[4], marks=pytest.mark.slow),
    ],
)
def test_xla_gives_the_numbers_of_eager(shape, image_size, count):
    function = both(Views(image_size=image_size, seed=9))
    images, index = smooth_images(shape, count), np.arange(count)
    eager = function(images, 2, index)
    xla = backend.compiled(function, jit_compile=True)
    assert_same_views(xla(images, np.int32(2), index), eager)


@pytest.mark.tensorflow("on JAX its many shapes take minutes to compile")
def test_float_images_give_the_same_view(view):
    images, index = random_images(5, 8, 8, 3), np.arange(5)
    expected = view(Views(), images, 0, index)
    for dtype in ("float16", "float32", "float64"):
        result = view(Views(), images.astype(dtype), 0, index)
        assert result.dtype == "float32"
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "make",
    [
        int,
        np.int64,
        lambda value: keras.ops.convert_to_tensor(value, "int32"),
        lambda value: keras.ops.convert_to_tensor(value, backend.INTEGER),
        lambda value: keras.Variable(value, dtype="int32", trainable=False),
    ],
    ids=["int", "numpy", "int32", "longest", "variable"],
)
def test_epoch_may_be_any_integer(make):
    images = random_images(3, 8, 8, 1)
    expected = Views().weak(images, 2, keras.ops.arange(3))
    result = Views().weak(images, make(2), np.arange(3))
    np.testing.assert_array_equal(result, expected)


def test_config_round_trip():
    views = Views(
        image_size=(24, 20),
        seed=7,
        crop_scale=None,
        crop_ratio=(0.5, 2.0),
        flip=0.25,
        jitter=(0.1, 0.2, 0.3, 0.05),
        jitter_probability=0.6,
        grayscale_probability=0.1,
        num_operations=2,
        cutout=0.25,
        cutout_color=(1, 2, 3),
    )
    config = views.get_config()
    assert json.loads(json.dumps(config)) == {
        "image_size": [24, 20],
        "seed": 7,
        "crop_scale": None,
        "crop_ratio": [0.5, 2.0],
        "flip": 0.25,
        "jitter": [0.1, 0.2, 0.3, 0.05],
        "jitter_probability": 0.6,
        "grayscale_probability": 0.1,
        "num_operations": 2,
        "cutout": 0.25,
        "cutout_color": [1.0, 2.0, 3.0],
    }
    restored = Views.from_config(json.loads(json.dumps(config)))
    assert restored.get_config() == config
    serialized = keras.saving.serialize_keras_object(views)
    assert serialized["registered_name"] == "alim_keras>Views"
    restored = keras.saving.deserialize_keras_object(serialized)
    assert restored.get_config() == config


@pytest.mark.parametrize(
    "arguments",
    [
        {"image_size": (0, 8)},
        {"image_size": 32},
        {"image_size": (8.5, 8)},
        {"seed": -1},
        {"seed": 2**32},
        {"seed": None},
        {"crop_scale": (0.0, 1.0)},
        {"crop_scale": (0.5, 1.5)},
        {"crop_scale": (0.9, 0.2)},
        {"crop_ratio": (2.0, 1.0)},
        {"crop_ratio": (0.0, 1.0)},
        {"flip": 1.5},
        {"flip": float("nan")},
        {"flip": "often"},
        {"jitter": (0.4, 0.4, 0.4)},
        {"jitter": (0.4, 0.4, 0.4, 0.6)},
        {"jitter": (-0.1, 0.4, 0.4, 0.1)},
        {"jitter_probability": -0.1},
        {"grayscale_probability": 2},
        {"num_operations": 1.5},
        {"num_operations": -1},
        {"cutout": 1.1},
        {"cutout_color": (0, 0, 256)},
        {"cutout_color": None},
    ],
    ids=str,
)
def test_bad_argument_is_named(arguments):
    (name,) = arguments
    with pytest.raises(ConfigError, match=f"`{name}`.*Received: {name}="):
        Views(**arguments)


@pytest.mark.parametrize(
    "shape", [(8, 8, 3), (2, 8, 8), (2, 3, 8, 8), (2, 8, 8, 4), (2, 8, 8, 2)]
)
def test_bad_images_are_refused(view, shape):
    with pytest.raises(DataError, match="images.shape="):
        view(Views(), np.zeros(shape), 0, np.arange(shape[0]))
