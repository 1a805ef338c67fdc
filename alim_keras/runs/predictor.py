"""A trained model as one function, from whatever a run left of it."""

import dataclasses
import importlib
import json
import os
import zipfile
from collections.abc import Callable

import keras
import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.messages import one_line
from alim_keras.data.tables.class_names import one_a_line
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError

_GRAPH = "saved_model.pb"


@dataclasses.dataclass(frozen=True)
class Predictor:
    """A classifier, its classes, and the form of what it takes.

    Attributes:
        probabilities: Function from `(B, *input_shape)`, uint8 or float32, to
            float32 `(B, C)`.
        class_names: Tuple of C strings.
        input_shape: `(H, W, channels)` as the training images had it, or
            `(d,)` for feature vectors.
        path: String, where the model was found.
    """

    probabilities: Callable
    class_names: tuple
    input_shape: tuple
    path: str

    @property
    def takes_features(self):
        """Whether it takes feature vectors, not images."""
        return len(self.input_shape) == 1


def load_predictor(path, class_names=None):
    """Loads a model for prediction.

    Of a run folder it takes `saved_model/`, which is the smallest and needs
    no classes of the user's own, or, on Keras's JAX backend, `model.keras`.

    Args:
        path: A run folder, a `.keras` file or the folder of a SavedModel.
        class_names: Sequence of C strings. Defaults to the names that the
            model or its run keeps, or else the numbers.

    Raises:
        CheckpointError: There is no model, or it cannot be read.
        ConfigError: `class_names` are not as many as the model's classes.

    Example:

    ```python
    predictor = load_predictor("runs/digits-pico-seed0")
    predictor.probabilities(images).argmax(axis=1)
    ```
    """
    found = _find(os.path.abspath(os.path.expanduser(path)))
    is_graph = os.path.isdir(found)
    function, shape = (_from_saved_model if is_graph else _from_keras)(found)
    run = _run_data(os.path.dirname(found))
    trained_on = tuple(run.get("image_shape", ()))
    if len(shape) == 3 and trained_on[2:] == shape[2:]:
        # Files are then decoded as they were for training.
        shape = trained_on
    num_classes = function(np.zeros((1, *shape), "float32")).shape[1]
    names = class_names or (_asset_names(found) if is_graph else None)
    names = names or run.get("class_names") or range(num_classes)
    names = tuple(str(name) for name in names)
    if len(names) != num_classes:
        raise ConfigError(
            f"The model in {found} has {num_classes} classes; name each of "
            f"them. Received: {len(names)} class names, {first_five(names)}"
        )
    return Predictor(function, names, shape, found)


def _find(path):
    """Returns the .keras file or the SavedModel folder that is meant."""
    if not os.path.exists(path):
        raise CheckpointError(
            f"There is no model at {path}. Give the folder of a finished run, "
            "its model.keras or its saved_model folder."
        )
    if os.path.isfile(path):
        if path.endswith(".keras"):
            return path
        raise CheckpointError(
            f"{path} is no model. Give the folder of a finished run, its "
            "model.keras or its saved_model folder."
        )
    if os.path.exists(os.path.join(path, _GRAPH)):
        return path
    graph = os.path.join(path, "saved_model")
    model = os.path.join(path, "model.keras")
    order = [(os.path.join(graph, _GRAPH), graph), (model, model)]
    if keras.config.backend() != "tensorflow":
        order.reverse()
    for file, found in order:
        if os.path.exists(file):
            return found
    raise CheckpointError(
        f"There is neither saved_model nor model.keras in {path}. Give the "
        "folder of a finished run; python -m alim_keras.export RUN_FOLDER "
        "makes them from a checkpoint of one that was stopped."
    )


def _from_keras(path):
    # The commands import the package piece by piece; a model may need any.
    for name in ("augment", "layers", "methods", "networks"):
        importlib.import_module(f"alim_keras.{name}")
    try:
        model = keras.saving.load_model(path, compile=False)
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        ImportError,
        zipfile.BadZipFile,
    ) as error:
        raise CheckpointError(
            f"{path} cannot be loaded: {one_line(error)}. A saved_model "
            "folder of the same run needs no classes of your own."
        ) from error
    if not hasattr(model, "inference_network"):
        raise CheckpointError(
            f"{path} is not a model of alim_keras. Received: "
            f"{type(model).__name__}"
        )
    network = model.inference_network()
    shape = tuple(model.image_shape)
    return (
        lambda batch: np.asarray(
            network.predict_on_batch(batch.astype("float32"))
        ),
        shape[-1:] if model.takes_features else shape,
    )


def _from_saved_model(path):
    serving = importlib.import_module("alim_keras.backend.serving")
    return serving.load_served_model(path)


def _asset_names(path):
    names = os.path.join(path, "assets", "class_names.txt")
    if not os.path.exists(names):
        return None
    with open(names, encoding="utf-8") as file:
        return one_a_line(file.read())


def _run_data(folder):
    """Returns what run.json says of the data, or an empty dict."""
    try:
        with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
            return dict(json.load(file)["data"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
