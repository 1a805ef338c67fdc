"""The classifier alone, for other programs: SavedModel, ONNX, LiteRT."""

import importlib.util
import json
import os
import tempfile
import zipfile

import keras

from alim_keras import backend
from alim_keras import errors
from alim_keras.files import write_atomically

CLASS_NAMES = "class_names.txt"
_ENDINGS = {"tf_saved_model": "", "onnx": ".onnx", "litert": ".tflite"}
# What Keras writes the files with, by its backend.
_PACKAGES = {
    "tensorflow": {"onnx": ("tf2onnx", "onnx"), "litert": ()},
    "jax": {"onnx": ("jax2onnx", "onnx")},
}


def write(model, path, format, class_names=None):
    """Writes a model's classifier; see `PartialLabelModel.export`."""
    errors.check_choice("format", format, tuple(_ENDINGS))
    names = model.class_names if class_names is None else class_names
    if names is not None:
        _check_names(names, model.num_classes)
    if format == "tf_saved_model":
        network = model.inference_network()
        backend.save_served_model(network, path, model.image_shape, names)
        return
    packages = _PACKAGES[keras.config.backend()].get(format)
    if packages is None:
        raise errors.EnvironmentLacksError(
            f"format={format!r} is written by Keras on TensorFlow. Save the "
            "model as model.keras, and load and export it with "
            "KERAS_BACKEND=tensorflow."
        )
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    if missing:
        raise errors.EnvironmentLacksError(
            f"format={format!r} needs the package(s) {' and '.join(missing)}: "
            f"python -m pip install {' '.join(missing)}"
        )
    if not os.fspath(path).endswith(_ENDINGS[format]):
        raise errors.ConfigError(
            f"A file of format={format!r} has the ending {_ENDINGS[format]}. "
            f"Received: filepath={os.fspath(path)}"
        )
    # Telephones expect images of one size.
    network = model.inference_network(resizes=format != "litert")
    # Keras exports what was called once.
    rank = len(network.inputs[0].shape)
    network(keras.ops.zeros((1, *model.image_shape[1 - rank :])))
    with tempfile.TemporaryDirectory() as folder:
        partial = os.path.join(folder, f"classifier{_ENDINGS[format]}")
        network.export(partial, format=format, verbose=False)
        if names is not None:
            _add_names(partial, format, list(map(str, names)))
        with open(partial, "rb") as file:
            write_atomically(path, file.read())


def _add_names(path, format, names):
    if format == "onnx":
        import onnx

        made = onnx.load(path)
        onnx.helper.set_model_props(made, {"class_names": json.dumps(names)})
        onnx.save(made, path)
        return
    # An archive at its end is where LiteRT's own tools keep labels.
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(CLASS_NAMES, "".join(f"{name}\n" for name in names))


def _check_names(class_names, num_classes):
    if len(class_names) != num_classes:
        raise errors.ConfigError(
            f"Argument `class_names` must name all {num_classes} classes. "
            f"Received: {len(class_names)} names"
        )
    for row, name in enumerate(class_names):
        try:
            text = str(name).encode("utf-8")
        except UnicodeEncodeError:
            text = b""
        if not text.strip() or b"\n" in text or b"\r" in text:
            raise errors.ConfigError(
                "Each class name must be one line of text, since "
                f"{CLASS_NAMES} has one on each. Received: "
                f"class_names[{row}]={ascii(str(name))}"
            )
