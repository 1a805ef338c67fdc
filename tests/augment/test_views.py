"""The views: constructor, config and draws; PiCO's and features' by loops."""

import itertools
import json
import math

import keras
import numpy as np
import pytest
import references_augment as loops
import tiny
from references_augment import random_images
from references_augment import smooth_images
from references_augment import to_numpy
from scipy.stats import norm

from alim_keras import backend
from alim_keras import draws
from alim_keras.augment import OPERATIONS
from alim_keras.augment import AutoAugmentViews
from alim_keras.augment import FeatureViews
from alim_keras.augment import Views
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.methods.inputs import make_batch

RNG = np.random.default_rng(1)

FEATURES = {"mean": [0.04, -0.01, 2e-3, 80.0], "std": [8e-3, 2e-3, 4e-6, 4.0]}
MEAN, STD = (255.0 * np.array(values) for values in FEATURES.values())
on_tensorflow = pytest.mark.tensorflow("on JAX its shapes take long to compile")


def made(kind, **options):
    if kind is FeatureViews:
        options = {**FEATURES, **options}
    return kind(**options)


def inputs(kind, count, *shape):
    if kind is FeatureViews:
        values = MEAN + STD * RNG.normal(size=(count, 1, 1, 4))
        return values.astype("float32")
    return smooth_images(count, *shape)


@on_tensorflow
@pytest.mark.parametrize(
    "kind, view",
    [
        *itertools.product((Views, AutoAugmentViews), ("weak", "strong")),
        (FeatureViews, "strong"),
    ],
)
def test_a_view_depends_on_seed_epoch_index_and_stream_alone(kind, view):
    def compute(seed, images, *args, **kwargs):
        return to_numpy(
            getattr(made(kind, seed=seed), view)(images, *args, **kwargs)
        )

    images = np.repeat(inputs(kind, 1, 16, 17, 3), 12, axis=0)
    index = np.arange(12) * 1000
    first = compute(5, images, 4, index)
    assert first.shape == images.shape and first.dtype == "float32"
    if kind is not FeatureViews:
        assert first.min() >= 0 and first.max() <= 255
    order = RNG.permutation(12)
    np.testing.assert_array_equal(
        compute(5, images, 4, index[order]), first[order]
    )
    for rows in (slice(0, 1), slice(1, 6), slice(6, 12)):
        part = compute(5, images[rows], 4, index[rows])
        np.testing.assert_array_equal(part, first[rows])
    for other in (
        compute(6, images, 4, index),
        compute(5, images, 5, index),
        compute(5, images, 4, index + 1),
        compute(5, images, 4, index, stream="another"),
    ):
        # CRDPLL's 9 x 9 crops and a flip: 1 in 162 weak views is met again.
        assert (first == other).all((1, 2, 3)).sum() <= 1
    assert len(np.unique(first.reshape(12, -1), axis=0)) >= 11


slow = pytest.mark.slow
SIZES = [
    pytest.param(Views, (8, 8, 1), None, 64, marks=slow),
    (Views, (32, 32, 3), None, 32),
    pytest.param(Views, (256, 256, 3), (224, 224), 3, marks=slow),
    (AutoAugmentViews, (32, 32, 3), None, 32),
    pytest.param(AutoAugmentViews, (32, 32, 1), (24, 20), 32, marks=slow),
    (FeatureViews, (1, 1, 4), None, 8),
]


@pytest.mark.parametrize(
    "compiler",
    [
        pytest.param(
            "graph", marks=pytest.mark.tensorflow("graphs of open shape")
        ),
        "xla",
    ],
)
@pytest.mark.parametrize("kind, shape, image_size, count", SIZES)
def test_compiled_gives_the_numbers_of_eager(
    compiler, kind, shape, image_size, count
):
    options = {"image_size": image_size} if image_size else {}
    views = made(kind, seed=9, **options)

    def function(*draw):
        return views.weak(*draw), views.strong(*draw)

    images, index = inputs(kind, count, *shape), np.arange(count)
    if compiler == "xla":
        compiled = backend.compiled(function, jit_compile=True)
        results = compiled(images, np.int32(2), index)
    else:
        import tensorflow as tf

        specs = [
            tf.TensorSpec((None, *shape), images.dtype),
            tf.TensorSpec((), "int64"),
            tf.TensorSpec((None,), "int64"),
        ]
        compiled = tf.function(function, input_signature=specs)
        results = compiled(images, np.int64(2), index)
    weak, strong = (
        (abs(to_numpy(one) - to_numpy(two)) > 255 * 1e-4).mean()
        for one, two in zip(results, function(images, 2, index), strict=True)
    )
    assert weak == 0
    # A compiler rounds a product and a sum once where others round twice, so
    # a level that Posterize, Solarize or Equalize rounds can fall the other
    # way: one pixel in a thousand may.
    assert strong <= 1e-3


def test_epoch_may_be_any_integer():
    images = random_images(3, 8, 8, 1)
    expected = Views().weak(images, 2, keras.ops.arange(3))
    longest = keras.ops.convert_to_tensor(2, backend.INTEGER)
    variable = keras.Variable(2, dtype="int32", trainable=False)
    for epoch in (2, np.int64(2), longest, variable):
        result = Views().weak(images, epoch, np.arange(3))
        np.testing.assert_array_equal(result, expected)


def test_views_are_made_by_name():
    model = tiny.plain(views=Views(seed=2))
    model.view_names = ("weak", "weak2", "strong")
    x, y = tiny.batch(3)
    result = make_batch(model, x, y, None).views
    assert list(result) == ["weak", "weak2", "strong"]
    first, second = (
        model.prepare(model.views.weak(x["image"], 0, x["index"], stream=name))
        for name in ("weak", "weak2")
    )
    np.testing.assert_array_equal(result["weak"], first)
    np.testing.assert_array_equal(result["weak2"], second)
    assert (abs(to_numpy(first) - to_numpy(second)) > 0.01).any()


SIZE_AND_SEED = {"image_size": (24, 20), "seed": 7}


@pytest.mark.parametrize(
    "kind, config",
    [
        (Views, {**SIZE_AND_SEED, "crop_scale": None, "jitter": False}),
        (AutoAugmentViews, {**SIZE_AND_SEED, "padding": 2, "flip": 0.1}),
        (FeatureViews, {**FEATURES, "seed": 3, "dropout": 0.4, "noise": 0.2}),
    ],
)
def test_config_round_trip(kind, config):
    views = kind(**config)
    assert config.items() <= views.get_config().items()
    stored = json.loads(json.dumps(keras.saving.serialize_keras_object(views)))
    assert stored["registered_name"] == f"alim_keras>{kind.__name__}"
    restored = keras.saving.deserialize_keras_object(stored)
    assert type(restored) is kind
    assert restored.get_config() == views.get_config()


@pytest.mark.parametrize(
    "kind, arguments",
    [
        (Views, {"image_size": (0, 8)}),
        (Views, {"seed": -1}),
        (Views, {"crop_scale": (0.0, 1.0)}),
        (Views, {"crop_scale": (0.9, 0.2)}),
        (Views, {"flip": math.nan}),
        (AutoAugmentViews, {"image_size": 32}),
        (AutoAugmentViews, {"padding": -1}),
        (FeatureViews, {"dropout": 1.5}),
        (FeatureViews, {"noise": math.nan}),
        (FeatureViews, {"std": 0.0}),
        (FeatureViews, {"std": [[1.0]]}),
        (FeatureViews, {"mean": [0.0, math.inf]}),
    ],
    ids=str,
)
def test_bad_argument_is_named(kind, arguments):
    (name,) = arguments
    with pytest.raises(ConfigError, match=f"`{name}`.*Received: .*{name}="):
        kind(**arguments)


@pytest.mark.parametrize(
    "kind, shape, words",
    [
        *(
            (kind, shape, f"{kind.__name__}.*images.shape=")
            for kind in (Views, AutoAugmentViews)
            for shape in ((2, 8, 8), (2, 3, 8, 8), (2, 8, 8, 2))
        ),
        (FeatureViews, (2, 3, 3, 4), "expected in the shape"),
        (FeatureViews, (2, 1, 4), "expected in the shape"),
        (
            FeatureViews,
            (2, 1, 1, 5),
            r"as many features .*\{4\}. Received",
        ),
    ],
)
def test_bad_shapes_are_refused(kind, shape, words):
    for view in (made(kind).weak, made(kind).strong):
        with pytest.raises(DataError, match=words):
            view(np.zeros(shape), 0, np.arange(shape[0]))


NOTHING = {"crop_scale": None, "jitter": False, "num_operations": 0}
NOTHING |= {"flip": 0.0, "cutout": 0.0}
CHANNELS = [
    pytest.param(1, marks=pytest.mark.tensorflow("on JAX colour is enough")),
    3,
]


@pytest.mark.parametrize("shape", [(8, 8, 1), (32, 24, 3)])
def test_nothing_switched_on_gives_the_image_back(shape):
    images, views = random_images(3, *shape), Views(**NOTHING)
    for view in (views.weak, views.strong):
        result = view(images, 0, np.arange(3))
        np.testing.assert_array_equal(result, images)


@pytest.mark.parametrize("image_size", [(224, 224), (32, 48)])
def test_larger_images_are_resized(image_size):
    images = random_images(2, 256, 250, 3)
    expected = keras.ops.image.resize(images.astype("float32"), image_size)
    views = Views(image_size=image_size, **NOTHING)
    auto = AutoAugmentViews(image_size, padding=0, flip=0.0)
    assert auto.strong(images, 0, np.arange(2)).shape == (2, *image_size, 3)
    for view in (views.weak, views.strong, auto.weak):
        # tf.image keeps the place as one float: at 250 its last bit is 1.5e-5,
        # which is worth 255 * 1.5e-5 = 0.004 for each direction.
        result = view(images, 0, np.arange(2))
        np.testing.assert_allclose(result, expected, atol=0.01)


@pytest.mark.parametrize("channels", CHANNELS)
def test_weak_view_equals_the_loop(channels):
    views = Views(image_size=(12, 10), seed=3)
    images = random_images(24, 14, 16, channels)
    result = to_numpy(views.weak(images, 7, np.arange(24)))
    u = to_numpy(draws.uniform(3, 7, np.arange(24), 30, "weak"))
    for image, row, u in zip(images, result, u.astype("float64"), strict=True):
        box = loops.crop_box(u[:22], (14, 16), (0.2, 1.0))
        expected = loops.affine(image, box, (12, 10), u[22] < 0.5)
        expected = loops.jitter(expected, u[23:29])
        if u[29] < 0.2:
            expected = loops.gray(expected)[..., None]
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
            loops.operation_map(name, value, size)
            for name, value in pairs
            if name.startswith(("Rotate", "Shear", "Translate"))
        ]
        expected = loops.affine(
            image, (0, 0, size[1], size[0]), size, u[22] < 0.5, maps
        )
        for name, value in pairs:
            expected = loops.pixel_operation(expected, name, value)
        left, top, right, bottom = loops.cutout_box(u[23:26], size, 0.3)
        color = (125, 123, 114) if channels == 3 else (125 + 123 + 114) / 3
        expected[top : bottom + 1, left : right + 1] = color
        wrong = abs(row - expected) > 0.05
        # A level that ends in .5 but for rounding may fall either way.
        assert wrong.mean() < 0.01, names
    assert seen == set(OPERATIONS)


def test_strong_view_of_features_equals_the_loop():
    images, index = inputs(FeatureViews, 40), np.arange(40) + 7
    views = made(FeatureViews, seed=5, dropout=0.3, noise=0.2)
    result = to_numpy(views.strong(images, 2, index))
    drop, noise = (
        to_numpy(draws.uniform(5, 2, index, 4, f"strong/{part}"))
        for part in ("dropout", "noise")
    )
    expected = images[:, 0, 0] + 0.2 * STD * norm.ppf(np.maximum(noise, 2**-24))
    expected = np.where(drop < 0.3, MEAN, expected)
    error = np.abs(result[:, 0, 0] - expected)
    assert (error < 1e-4 * STD + 1e-6 * np.abs(MEAN)).all()
    # 160 draws of 0.3: five standard deviations, sqrt(160 * 0.21) = 5.8.
    assert 19 < (drop < 0.3).sum() < 77


def test_the_extremes_of_the_draws_give_finite_noise(monkeypatch):
    # The ends of the 24-bit grid; Phi(-5.294) = 2 ** -24.
    for end, sign in ((0.0, -1.0), (1.0 - 2.0**-24, 1.0)):
        monkeypatch.setattr(
            draws,
            "uniform",
            lambda *_, end=end: keras.ops.full((2, 4), end, "float32"),
        )
        views = FeatureViews(noise=1.0, dropout=0.0)
        result = to_numpy(views.strong(np.zeros((2, 4)), 0, np.arange(2)))
        assert result == pytest.approx(sign * 5.294, abs=0.005)


def test_flat_vectors_get_the_same_views():
    images, index = inputs(FeatureViews, 6), np.arange(6)
    views = made(FeatureViews)
    np.testing.assert_array_equal(views.weak(images, 1, index), images)
    for view in (views.weak, views.strong):
        flat = to_numpy(view(images.reshape(6, 4), 1, index))
        expected = to_numpy(view(images, 1, index)).reshape(6, 4)
        np.testing.assert_array_equal(flat, expected, strict=True)
