"""Checks and prepares a model's backbone, batches and `fit` arguments."""

from typing import Any
from typing import NamedTuple

import keras
import numpy as np

from alim_keras import backend
from alim_keras.augment import make_views


class Batch(NamedTuple):
    """One replica's part of a training batch.

    Attributes:
        views: Dict from the names in the method's `view_names` to normalised
            images `(B, H, W, channels)`.
        index: Integer `(B,)`, rows of the pseudo-label table.
        candidates: Multi-hot float32 `(B, C)`.
        sample_weight: `(B,)` or None.
    """

    views: Any
    index: Any
    candidates: Any
    sample_weight: Any


def make_batch(model, x, y, sample_weight):
    """Checks a training batch and makes its views, unless it has them."""
    names = model.view_names
    check_batch(x, y, model.num_classes, names)
    backend.check_rows(x["index"], model.num_examples)
    x = backend.check_shares(x, even=bool(model.mixup_weight))
    if names[0] in x:
        views = {name: x[name] for name in names}
    elif model.views is not None:
        draw = (x["image"], model.epoch, x["index"])
        views = make_views(model.views, names, draw)
    else:
        views = {name: x["image"] for name in names}
    return Batch(
        {name: model.prepare(view) for name, view in views.items()},
        x["index"],
        model.current_candidates(x["index"], keras.ops.cast(y, "float32")),
        sample_weight,
    )


def check_batch(x, y, num_classes, view_names):
    """Raises, by name, if a training batch has another form than needed."""
    if not isinstance(x, dict) or "index" not in x:
        keys = sorted(x) if isinstance(x, dict) else type(x).__name__
        raise ValueError(
            "Training needs x to be a dict with 'image' and 'index' (the "
            "example's row in the pseudo-label table), for example "
            "{'image': images, 'index': numpy.arange(len(images))}. "
            f"Received: x={keys}"
        )
    given = [name for name in view_names if name in x]
    if len(given) < len(view_names) and (given or "image" not in x):
        raise ValueError(
            "Training needs x['image'], or all views that the method learns "
            f"from, {', '.join(view_names)}. "
            f"Received: x with keys {sorted(x)}"
        )
    check_sets(y, num_classes)


def check_sets(y, num_classes):
    """Raises unless y is candidate sets, or one-hot labels, `(B, C)`."""
    if y is None:
        raise ValueError(
            "Training needs y, the candidate sets, multi-hot (batch, "
            f"{num_classes}). Received: y=None"
        )
    if not hasattr(y, "shape") or hasattr(y, "row_splits"):
        raise ValueError(
            "y must be a dense multi-hot tensor; lists of labels become one by "
            "alim_keras.data.CandidateSets.from_lists and its rows(index). "
            f"Received: y of type {type(y).__name__}"
        )
    if len(y.shape) != 2 or y.shape[1] != num_classes:
        raise ValueError(
            "y must be candidate sets, multi-hot (batch, num_classes="
            f"{num_classes}); class numbers become sets of one by "
            f"keras.ops.one_hot. Received: y.shape={tuple(y.shape)}"
        )


def check_rows(x, num_examples):
    """Raises for rows outside the table, where they are known beforehand.

    Inside a step that is compiled for an accelerator nothing can raise.

    Args:
        x: The data given to `fit` or `train_on_batch`: a dict of arrays, or a
            data set of `alim_keras.data`. The rows of another data set are
            known in its steps only.
        num_examples: N, the rows of the table.
    """
    first, last = 0, getattr(x, "num_examples", 0) - 1
    index = x.get("index") if isinstance(x, dict) else None
    if isinstance(index, (np.ndarray, list, tuple)) and np.size(index):
        first, last = np.min(index), np.max(index)
    if first < 0 or last >= num_examples:
        raise ValueError(
            "x['index'] holds rows that the pseudo-label table does not have: "
            "they must be whole numbers from 0 to num_examples - 1. Received: "
            f"x['index'] from {first} to {last}, num_examples={num_examples}"
        )


def check_fit(model, x, arguments):
    """Refuses, by name, arguments of `fit` that would train wrongly."""
    if arguments.get("class_weight") is not None:
        raise ValueError(
            "Argument `class_weight` does not work with candidate sets: Keras "
            "would take the weight of the first candidate. Pass per-example "
            "weights as `sample_weight`."
        )
    check_rows(x, model.num_examples)
    backend.check_executions(model)


class EpochClock(keras.callbacks.Callback):
    """Tells the model and its data the epoch that begins.

    So random draws and schedules follow the epoch Keras counts, also after
    `initial_epoch=` or `BackupAndRestore`. Its place among the callbacks does
    not matter.
    """

    def __init__(self, epoch_counter):
        super().__init__()
        self.epoch_counter = epoch_counter

    def on_epoch_begin(self, epoch, logs=None):
        if self.epoch_counter is not None:
            self.epoch_counter.epoch = epoch
        self.model.enter_epoch(epoch, self.params["epochs"])


def check_backbone(backbone):
    """Returns image shape and feature size, or raises if it has none."""
    shape = getattr(backbone, "input_shape", None)
    if not (isinstance(shape, tuple) and len(shape) == 4 and all(shape[1:])):
        raise ValueError(
            "Argument `backbone` must be a keras.Model that takes images of "
            "one fixed shape, (None, height, width, channels), or feature "
            "vectors as (None, 1, 1, features); give it a keras.Input of that "
            "shape. Received: "
            f"backbone.input_shape={shape}"
        )
    feature = tuple(backbone.output_shape)
    if len(feature) != 2 or feature[1] is None:
        raise ValueError(
            "Argument `backbone` must return one feature vector per image, "
            "(None, features): end it with global pooling. Received: "
            f"backbone.output_shape={feature}"
        )
    return tuple(shape[1:]), feature[1]


def check_features(shape, expected):
    """Raises unless a batch has the shape `(B, d)` or `(B, 1, 1, d)`."""
    # TensorFlow's graphs forget the rank once they have seen both.
    if getattr(shape, "rank", 0) is None:
        return
    if tuple(shape[1:]) not in (tuple(expected), tuple(expected[-1:])):
        raise ValueError(
            f"The backbone takes vectors of {expected[-1]} features, (batch, "
            f"{expected[-1]}). Received: shape={tuple(shape)}"
        )


def synchronise_batch_norm(network):
    """Makes batch statistics those of the global batch, on many replicas.

    Left alone, each replica would keep its own moving averages and only the
    first one's would be saved.
    """
    if backend.num_replicas() == 1:
        return
    seen, waiting = set(), [network]
    while waiting:
        layer = waiting.pop()
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.synchronized = True
        # A layer inside another stands in one of its attributes.
        parts = keras.tree.flatten(list(vars(layer).values()))
        waiting += [part for part in parts if isinstance(part, keras.Layer)]


def rescaling(mean, std):
    """Returns Rescaling's scale and offset: (x / 255 - mean) / std."""
    mean, std = np.asarray(mean, "float64"), np.asarray(std, "float64")
    if not (np.all(std > 0) and np.all(np.isfinite(mean))):
        raise ValueError(
            "Arguments `mean` and `std` must be finite, and `std` positive. "
            f"Received: mean={mean.tolist()}, std={std.tolist()}"
        )
    return (1.0 / (255.0 * std)).tolist(), (-mean / std).tolist()


def check_class_names(class_names, num_classes):
    """Raises unless there is one name per class (or none at all)."""
    if class_names is not None and len(class_names) != num_classes:
        raise ValueError(
            f"Argument `class_names` must name all {num_classes} classes. "
            f"Received: {len(class_names)} names"
        )
