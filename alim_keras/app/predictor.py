"""A trained model as one function, and the items that it is to predict."""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
from collections.abc import Callable

import keras
import numpy as np

from alim_keras import errors
from alim_keras import methods
from alim_keras.backend.tensorflow import load_served_model
from alim_keras.data import checks
from alim_keras.data.images import DiskImages
from alim_keras.data.matching import list_images

_ADVICE = (
    "Give the folder of a finished run, its model.keras or its saved_model "
    "folder; python -m alim_keras.export RUN_FOLDER makes both."
)


@dataclasses.dataclass(frozen=True)
class Predictor:
    """A classifier, its C classes, and the form of its input.

    `probabilities` takes `(B, *input_shape)` to float32 `(B, C)`; the shape is
    `(H, W, channels)` of the training images, or `(d,)` of feature vectors.
    """

    probabilities: Callable
    class_names: tuple
    input_shape: tuple

    @property
    def takes_features(self):
        """Whether it takes feature vectors, not images."""
        return len(self.input_shape) == 1

    @property
    def form(self):
        """Side and channels of the images it takes."""
        height, width, channels = self.input_shape
        return max(height, width), channels


def load_predictor(path):
    """Returns the `Predictor` of a run folder, a .keras file or a SavedModel.

    Of a run folder it takes `saved_model/` or, on Keras's JAX backend,
    `model.keras`. Classes without names are called by their numbers.
    """
    path = _find(os.path.abspath(os.path.expanduser(path)))
    is_graph = os.path.isdir(path)
    load = load_served_model if is_graph else _load_keras
    kept, trained_on = _of_run(path)
    try:
        function, shape = load(path)
        if len(shape) == 3 and trained_on[2:] == tuple(shape[2:]):
            # Files are then decoded as they were for training.
            shape = trained_on
        num_classes = function(np.zeros((1, *shape), "float32")).shape[1]
    except Exception as error:
        # Damaged files, and classes that are not here, fail in many ways.
        raise errors.CheckpointError(
            f"{path} cannot be loaded: {errors.one_line(error)}. {_ADVICE} A "
            "saved_model needs no classes of your own."
        ) from error
    names = kept or tuple(map(str, range(num_classes)))
    if len(names) != num_classes:
        raise errors.CheckpointError(
            f"The model in {path} has {num_classes} classes, but beside it "
            f"stand {len(names)} names, {errors.first_five(names)}. {_ADVICE}"
        )
    return Predictor(function, names, tuple(shape))


def _find(path):
    """Returns the .keras file or the SavedModel folder that is meant."""
    chosen = [os.path.join(path, n) for n in ("saved_model", "model.keras")]
    if keras.config.backend() != "tensorflow":
        chosen.reverse()
    for model in (*chosen, path):
        is_keras = model.endswith(".keras") and os.path.isfile(model)
        if is_keras or os.path.isfile(os.path.join(model, "saved_model.pb")):
            return model
    raise errors.CheckpointError(f"There is no model in {path}. {_ADVICE}")


def _load_keras(path):
    model = keras.saving.load_model(path, compile=False)
    if isinstance(model, methods.PartialLabelModel):
        network, shape = model.inference_network(), tuple(model.image_shape)
    elif model.name == "images_to_probabilities":
        # On a frozen backbone, see `features.served`.
        size = model.layers[1]
        network = model
        shape = size.height, size.width, model.input_shape[-1]
    else:
        raise errors.CheckpointError(f"{path} is not a model of alim_keras")

    def probabilities(batch):
        return np.asarray(network.predict_on_batch(batch.astype("float32")))

    return probabilities, shape[-1:] if shape[:2] == (1, 1) else shape


def _of_run(path):
    """Returns class names and shape of the training images, if known."""
    names, shape = (), ()
    folder = pathlib.Path(path)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        text = (folder.parent / "run.json").read_text("utf-8")
        data = json.loads(text)["data"]
        names, shape = tuple(data["class_names"]), tuple(data["image_shape"])
    with contextlib.suppress(OSError):
        text = (folder / "assets" / "class_names.txt").read_text("utf-8")
        names = tuple(text.splitlines())
    return names, shape


def items_of_paths(paths, predictor):
    """Returns pairs of ids and an array, or of paths and `DiskImages`."""
    items = []
    # Files beside files are read in common batches.
    groups = itertools.groupby(map(os.path.expanduser, paths), _is_array)
    for is_array, group in groups:
        if is_array:
            items += [_of_array(path, predictor) for path in group]
        else:
            files = [file for path in group for file in _files(path, predictor)]
            images = DiskImages(files, *predictor.form)
            items.append((np.array(files, object), images))
    return items


def _is_array(path):
    return path.lower().endswith((".npz", ".npy"))


def _files(path, predictor):
    """Returns the image files that a path stands for."""
    if predictor.takes_features:
        raise errors.DataError(
            f"{path}: the model takes arrays in .npz and .npy files, of the "
            f"shape {predictor.input_shape}"
        )
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(path, name) for name in list_images(path).files]


def _of_array(path, predictor):
    """Returns ids and values in an .npy file, or in an .npz file with ids."""
    name = "features" if predictor.takes_features else "images"
    content = checks.read_npz(path, (name, "ids"), name)
    if name not in content:
        raise errors.DataError(f"{path}: there is no array {name!r}")
    values = content[name]
    count = len(values) if values.ndim else 0
    ids = content.get("ids", np.arange(count)).reshape(-1).astype(str)
    if len(ids) != count or "" in ids:
        raise errors.DataError(
            f"{path}: {count} ids were expected. Received: {len(ids)}, or blank"
        )
    checks.check_names(ids, path)
    with checks.in_file(path):
        if predictor.takes_features:
            values = checks.validate_features(values, ids)[:, 0, 0]
        else:
            values = values[..., None] if values.ndim == 3 else values
            values = checks.validate_images(values, ids)
    size, wanted = values.shape[-1], predictor.input_shape[-1]
    if size != wanted:
        unit = "features" if predictor.takes_features else "channels"
        raise errors.DataError(
            f"{path}: the model takes {wanted} {unit}. Received: {size} {unit}"
        )
    return ids, values
