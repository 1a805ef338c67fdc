"""The three kinds of views share constructor, config and draws."""

import json
import math

import keras
import numpy as np
import pytest
import tiny
from references_augment import random_images
from references_augment import smooth_images
from references_augment import to_numpy

from alim_keras import backend
from alim_keras.augment import AutoAugmentViews
from alim_keras.augment import FeatureViews
from alim_keras.augment import Views
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.methods.inputs import make_batch

RNG = np.random.default_rng(1)

FEATURES = {"mean": [0.1, -0.2, 0.3, 4.0], "std": [0.01, 0.02, 3e-5, 1.0]}
on_tensorflow = pytest.mark.tensorflow("on JAX its shapes take long to compile")


def made(kind, **options):
    if kind is FeatureViews:
        options = {**FEATURES, **options}
    return kind(**options)


def inputs(kind, count, *shape):
    if kind is FeatureViews:
        return RNG.normal(size=(count, 1, 1, 4)).astype("float32")
    return smooth_images(count, *shape)


@on_tensorflow
@pytest.mark.parametrize(
    "kind, view",
    [
        (Views, "weak"),
        (Views, "strong"),
        (AutoAugmentViews, "weak"),
        (AutoAugmentViews, "strong"),
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


def both(views):
    def function(images, epoch, index):
        return (
            views.weak(images, epoch, index),
            views.strong(images, epoch, index),
        )

    return function


def assert_same_views(results, expected):
    """Weak and strong views that are equal to 1e-4 of the pixels' range."""
    weak, strong = (
        (abs(to_numpy(one) - to_numpy(two)) > 255 * 1e-4).mean()
        for one, two in zip(results, expected, strict=True)
    )
    assert weak == 0
    # A compiler rounds a product and a sum once where others round twice, so
    # a level that Posterize, Solarize or Equalize rounds can fall the other
    # way: one pixel in a thousand may.
    assert strong <= 1e-3


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
    function = both(made(kind, seed=9, **options))
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
    assert_same_views(results, function(images, 2, index))


@pytest.mark.parametrize(
    "make",
    [
        int,
        np.int64,
        lambda value: keras.ops.convert_to_tensor(value, backend.INTEGER),
        lambda value: keras.Variable(value, dtype="int32", trainable=False),
    ],
    ids=["int", "numpy", "longest", "variable"],
)
def test_epoch_may_be_any_integer(make):
    images = random_images(3, 8, 8, 1)
    expected = Views().weak(images, 2, keras.ops.arange(3))
    result = Views().weak(images, make(2), np.arange(3))
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


@pytest.mark.parametrize("kind", [Views, AutoAugmentViews])
@pytest.mark.parametrize("shape", [(2, 8, 8), (2, 3, 8, 8), (2, 8, 8, 2)])
def test_bad_images_are_refused(kind, shape):
    for view in (kind().weak, kind().strong):
        with pytest.raises(DataError, match=rf"{kind.__name__}.*images.shape="):
            view(np.zeros(shape), 0, np.arange(shape[0]))
