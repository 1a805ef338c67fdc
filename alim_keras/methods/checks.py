"""What `PartialLabelModel` asks of its backbone, its batches and `fit`."""

import keras
import numpy as np

from alim_keras import backend


def check_backbone(backbone):
    """Builds the backbone if need be; returns image shape and feature size."""
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
    for layer in network._flatten_layers():
        if isinstance(layer, keras.layers.BatchNormalization):
            backend.synchronise(layer)


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
            "y must be a dense multi-hot tensor; turn ragged lists of labels "
            "into one with alim_keras.data.validate_candidates. Received: "
            f"y of type {type(y).__name__}"
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
        x: What `fit` or `train_on_batch` was given: a dict of arrays, or a
            data set of `alim_keras.data`. Any other data set tells its rows
            only as it goes.
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
    """Refuses, by name, what `fit` cannot do right."""
    if arguments.get("class_weight") is not None:
        raise ValueError(
            "Argument `class_weight` does not work with candidate sets: Keras "
            "would take the weight of the first candidate. Pass per-example "
            "weights as `sample_weight`."
        )
    check_rows(x, model.num_examples)
    backend.check_executions(model)


def first_non_finite(known, values, step):
    """Notes the step at which a value was NaN or infinite for the first time.

    Args:
        known: Integer tensor `(n,)`: the step noted earlier, or -1.
        values: List of n scalars, this replica's.
        step: Integer scalar: the current step.

    Returns:
        An integer tensor `(n,)`, the same on all replicas.
    """
    ops = keras.ops
    known = ops.convert_to_tensor(known)
    values = backend.all_gather(ops.expand_dims(ops.stack(values), 0))
    finite = ops.all(ops.isfinite(values), axis=0)
    first = ops.logical_and(ops.logical_not(finite), known < 0)
    return ops.where(first, ops.cast(step, backend.INTEGER), known)


def with_statistics(values, network):
    """Returns scalars, or NaN for all if a batch statistic is not a number.

    Pooling and ReLU may swallow a NaN on its way to the loss; the averages of
    batch normalisation keep it.
    """
    ops = keras.ops
    statistics = [
        ops.sum(weight)
        for weight in network.non_trainable_variables
        if keras.backend.is_float_dtype(weight.dtype)
    ]
    if not statistics:
        return values
    finite = ops.isfinite(sum(statistics))
    return [ops.where(finite, value, float("nan")) for value in values]
