"""Every form of input, sample weights, and errors by name."""

import itertools

import keras
import numpy as np
import pytest
import references
import tiny

import alim_keras
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import NonFiniteError
from alim_keras.errors import check_pixels
from alim_keras.methods import inputs as checks


class Batches(keras.utils.PyDataset):
    def __init__(self, *arrays):
        super().__init__()
        self.arrays = arrays

    def __len__(self):
        return 4

    def __getitem__(self, step):
        part = slice(6 * step, 6 * step + 6)
        return keras.tree.map_structure(lambda array: array[part], self.arrays)


def sliced(*arrays):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(arrays).batch(6)


def test_every_kind_of_input_trains_alike():
    x, y = tiny.batch(24)
    batches = Batches(x, y)
    kinds = [
        {"x": x, "y": y, "batch_size": 6},
        {"x": batches},
        {"x": (batches[step % 4] for step in itertools.count())},
    ]
    if keras.config.backend() == "tensorflow":
        kinds.append({"x": sliced(x, y)})
    results = []
    for options in kinds:
        model = tiny.plain(mixup_weight=1.0)
        tiny.fit(model, options.pop("x"), steps_per_epoch=4, **options)
        results.append(tiny.snapshot(model))
    for other in results[1:]:
        tiny.assert_same(results[0], other)


def test_on_batch_methods():
    x, y = tiny.batch()
    model = tiny.pico()
    values = model.train_on_batch(x, y)
    assert np.all(np.isfinite(values)) and len(values) == 6
    weight = np.array([1, 0, 0, 0, 0, 0], "float32")
    model.reset_metrics()  # Keras 3.13 averages over calls.
    logs = model.test_on_batch(x, y, sample_weight=weight, return_dict=True)
    p = model.predict_on_batch(x["image"])
    expected = references.candidate_crossentropy(y[:1], p[:1])[0] / 6
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)
    assert model.test_on_batch(x, y)[0] > 0.0


@pytest.mark.parametrize("how", ["fit", "train_on_batch"])
def test_class_weight_is_refused(how):
    # Case 42: Keras would take the weight of the first candidate.
    x, y = tiny.batch()
    model = tiny.pico()
    with pytest.raises(ValueError, match="class_weight.*sample_weight"):
        getattr(model, how)(x, y, class_weight={0: 1.0, 1: 10.0, 2: 100.0})


def test_a_batch_of_one_trains():
    x, y = tiny.batch(1)
    model = tiny.pico(compile_options=tiny.RARE_SHAPE)
    logs = model.train_on_batch(x, y, return_dict=True)
    assert all(np.isfinite(value) for value in logs.values())
    # Mixed with itself: the same image, so the same loss.
    assert logs["mix_loss"] == pytest.approx(logs["cls_loss"], rel=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_images_of_any_dtype_train_alike(dtype):
    # Case 44.
    x, y = tiny.batch()
    model = tiny.plain()
    expected = model.predict(x["image"], verbose=0)
    image = x["image"].astype(dtype)
    found = model.predict(image, verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    logs = model.train_on_batch({**x, "image": image}, y, return_dict=True)
    reference = tiny.plain().train_on_batch(x, y, return_dict=True)
    assert logs["loss"] == pytest.approx(reference["loss"], rel=1e-6)


# Pixels.


SCALED = {
    "0 to 1": lambda x: x / 255,
    "-1 to 1": lambda x: x / 127.5 - 1,
    "standardised": lambda x: (x / 255 - 0.48) / 0.23,
    "0 and 1": lambda x: np.round(x / 255),
}


@pytest.mark.parametrize("kind", SCALED)
@pytest.mark.parametrize("how", ["train", "evaluation", "fit", "validation"])
def test_scaled_pixels_are_refused(how, kind):
    x, y = tiny.batch(24)
    images = x["image"] = SCALED[kind](np.float32(x["image"]))
    model = tiny.plain()
    before = tiny.snapshot(model)

    def act(**options):
        if how == "train":
            alim_keras.data.train_dataset(images, y, 6, **options)
        elif how == "evaluation":
            alim_keras.data.eval_dataset(images, y, 3, **options)
        elif how == "fit":
            tiny.fit(model, x, y=y, batch_size=6, **options)
        else:
            options["validation_data"] = (images, y)
            tiny.fit(model, tiny.batch(6)[0], y=y[:6], **options)

    words = rf"24 float images.* {images.min():.3g} to {images.max():.3g}: "
    with pytest.raises(DataError, match=f"{words}.*check_pixels=False"):
        act()
    tiny.assert_same(before, tiny.snapshot(model))
    act(check_pixels=False)


@pytest.mark.parametrize("make", [Batches, sliced])
def test_a_data_set_of_ones_own_is_looked_at(make):
    if make is sliced and keras.config.backend() != "tensorflow":
        pytest.skip("tf.data is TensorFlow's")
    x, y = tiny.batch(24)
    data = make({**x, "image": np.float32(x["image"]) / 255}, y)
    model = tiny.plain()
    with pytest.raises(DataError, match="6 float images, of 6,"):
        tiny.fit(model, data)
    tiny.fit(model, data, check_pixels=False)


def test_what_only_looks_dark_is_not_refused():
    dark = np.random.default_rng(0).integers(0, 2, (400, 4, 4, 1))
    dark = dark.astype("float32")
    one_bright = dark.copy()
    one_bright[222, 3, 3] = 2.0
    for images in (
        one_bright,
        dark[:9],  # As few as that may be night photographs.
        dark.astype("uint8"),
        dark.astype("int64"),
        np.zeros((40, 4, 4, 1), "float32"),
        dark[:0],
        dark[:, :1, :1] - 0.5,  # Feature vectors.
        one_bright * 200 - 8,  # A resized image may leave [0, 255].
    ):
        check_pixels(images)
    with pytest.raises(DataError, match="10 float images, of 10, run from 0"):
        check_pixels(dark[:10])
    # Of many, every second is looked at, first to last.
    dark[1::2] *= 9
    with pytest.raises(DataError, match="200 float images, of 400,"):
        check_pixels(dark)


# Errors, by name (case 45).


def test_a_loss_of_keras_is_refused():
    model = tiny.plain()
    for losses in ({"loss": "mse"}, {"loss_weights": [1.0]}):
        with pytest.raises(ConfigError, match="brings its own loss.*own_meth"):
            model.compile("sgd", **losses)
    with pytest.raises(ConfigError, match="'categorical_crossentropy'"):
        model.compile("sgd", "categorical_crossentropy")


class Ragged:
    """Has what a tf.RaggedTensor is recognised by."""

    shape, row_splits = (2, None), np.array([0, 1, 3])


def test_the_form_of_a_batch_is_checked():
    image, index = np.zeros((2, 4, 4, 1)), np.arange(2)
    y = np.ones((2, 3), "float32")
    both = {"image": image, "index": index}
    for x, candidates, words in [
        (image, y, "'index'"),
        ({"image": image}, y, r"keys \['image'\]"),
        ({"index": index}, y, r"keys \['index'\]"),
        ({**both, "weak": image}, y, "strong"),
        (both, None, "type NoneType"),
        (both, np.array([0, 1]), r"y.shape=\(2,\)"),
        (both, np.ones((2, 4)), r"y.shape=\(2, 4\)"),
        (both, [[1, 0, 0]], "type list"),
        (both, Ragged(), "Ragged"),
    ]:
        with pytest.raises(ValueError, match=words):
            checks.check_batch(x, candidates, 3, ("weak", "strong"))
    checks.check_batch(both, y, 3, ("weak", "strong"))


def test_the_form_of_the_backbone_is_checked():
    maps, pool = keras.layers.Conv2D(2, 3), keras.layers.GlobalMaxPooling2D()
    for layers, words in [
        ([keras.layers.Dense(2)], "Input"),
        ([keras.Input((4, 4, 1)), maps], r"output_shape=.*, 2, 2, 2\)"),
        ([keras.Input((None, None, 1)), pool], "input_shape=.*None, None, 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            alim_keras.PiCO(keras.Sequential(layers), 3, 4)


@pytest.mark.parametrize("how", ["data set", "fit", "train_on_batch"])
def test_more_examples_than_the_table_has_rows_are_named(how):
    # Compiled, on an accelerator, nothing would complain: rows out of range
    # are clamped when read and dropped when written.
    images, candidates, _ = tiny.examples()
    x, y = tiny.batch(24)
    model = tiny.plain(count=20)
    before = tiny.snapshot(model)
    words = "from 0 to 23, num_examples=20"
    with pytest.raises(ValueError, match=words):
        if how == "data set":
            tiny.fit(model, tiny.batches(images, candidates, 12))
        elif how == "fit":
            tiny.fit(model, x, y=y, batch_size=6)
        else:
            model.train_on_batch(x, y)
    tiny.assert_same(before, tiny.snapshot(model))
    # As many as there are is right, and a row below 0 is not.
    tiny.plain(count=24).train_on_batch(x, y)
    with pytest.raises(ValueError, match="from -1 to 22"):
        model.train_on_batch({**x, "index": x["index"] - 1}, y)


def test_rows_that_only_a_step_sees_do_not_pass_either():
    x, y = tiny.batch(24)
    x["index"] = x["index"] + 6
    model = tiny.plain()
    guard = alim_keras.callbacks.NonFiniteGuard()
    # The last of four batches has them. On a CPU TensorFlow itself refuses
    # them; elsewhere the table answers with NaN.
    if keras.config.backend() == "tensorflow":
        from tensorflow.errors import InvalidArgumentError as error

        words = r"not in \[0, 24\)"
    else:
        error, words = NonFiniteError, "Loss cls_loss.*epoch 1"
    with pytest.raises(error, match=words):
        tiny.fit(model, Batches(x, y), callbacks=[guard])
    # No row was written in the place of another.
    assert np.isfinite(model.pseudo_labels.numpy()).all()


@pytest.mark.parametrize(
    ("width", "metrics"), [(None, True), (None, False), (1, False), (4, False)]
)
def test_evaluation_labels_of_another_form_are_named(width, metrics):
    # Class numbers would be multiplied with the probabilities.
    images, _, labels = tiny.examples()
    y = labels if width is None else np.repeat(labels[:, None], width, axis=1)
    model = tiny.pico(metrics=metrics)
    with pytest.raises(ValueError, match="num_classes|multi-hot"):
        model.evaluate(images, y, batch_size=3, verbose=0)
