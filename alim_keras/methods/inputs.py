"""Checks and prepares a model's arguments, backbone and batches."""

import collections
import inspect

import keras
import numpy as np

from alim_keras import backend
from alim_keras import errors
from alim_keras.networks import CrossFittedHeads
from alim_keras.networks import classifier_head


def arguments_of(method):
    """Returns a dict from a method's argument names to their defaults.

    Those of its base classes, which it takes as `**kwargs`, come with it.
    """
    arguments = {}
    ancestors = method.__mro__
    for base in ancestors[: ancestors.index(keras.Model)]:
        _, *parameters = inspect.signature(base.__init__).parameters.values()
        for parameter in parameters:
            # Neither `*args` nor `**kwargs`.
            if not str(parameter).startswith("*"):
                arguments.setdefault(parameter.name, parameter.default)
    return arguments


def is_plain(value):
    """Whether a value has nothing but numbers, strings and None in it."""
    plain = str | int | float | np.generic | None
    return all(isinstance(part, plain) for part in keras.tree.flatten(value))


# One replica's part of a training batch: a dict from the method's `view_names`
# to normalised images; the rows of the pseudo-label table, integers `(B,)`; the
# candidate sets, float32 `(B, C)`; and `(B,)` or None.
Batch = collections.namedtuple("Batch", "views index candidates sample_weight")


def make_batch(model, x, y, sample_weight):
    """Checks a training batch and makes its views, unless it has them."""
    names = model.view_names
    check_batch(x, y, model.num_classes, names)
    if names[0] in x or model.views is None:
        views = {name: x.get(name, x.get("image")) for name in names}
    else:
        views = {}
        for name in names:
            # "strong2" is another of the kind "strong".
            view = getattr(model.views, name.rstrip("0123456789"))
            views[name] = view(x["image"], model.epoch, x["index"], stream=name)
    return Batch(
        {name: model.prepare(view) for name, view in views.items()},
        x["index"],
        model.current_candidates(x["index"], keras.ops.cast(y, "float32")),
        sample_weight,
    )


def check_batch(x, y, num_classes, view_names):
    """Raises, by name, if a training batch has another form than needed."""
    keys = set(x) if isinstance(x, dict) else set()
    has_views = keys.issuperset(view_names)
    has_images = "image" in keys and keys.isdisjoint(view_names)
    if "index" not in keys or not (has_views or has_images):
        raise ValueError(
            "Training needs x to be a dict with 'index' (the example's row in "
            "the pseudo-label table) and 'image', or all views that the method "
            f"learns from, {', '.join(view_names)}; for example {{'image': "
            "images, 'index': numpy.arange(len(images))}. Received: x="
            f"{type(x).__name__} with keys {sorted(keys)}"
        )
    check_sets(y, num_classes)


def check_sets(y, num_classes):
    """Raises unless y is candidate sets, or one-hot labels, `(B, C)`."""
    # A ragged tensor has a shape too.
    is_dense = hasattr(y, "shape") and not hasattr(y, "row_splits")
    if not is_dense or len(y.shape) != 2 or y.shape[1] != num_classes:
        shape = f", y.shape={tuple(y.shape)}" if is_dense else ""
        raise ValueError(
            "y must be candidate sets, a dense multi-hot (batch, num_classes="
            f"{num_classes}); lists of labels become one by alim_keras.data."
            "CandidateSets.from_lists and its rows(index), class numbers by "
            f"keras.ops.one_hot. Received: y of type {type(y).__name__}{shape}"
        )


def check_images(*sources):
    """Applies `check_pixels` to what `fit` is given, or to its first batch."""
    for x in sources:
        if hasattr(x, "examples"):
            # `alim_keras.data` has looked at its own.
            continue
        if isinstance(x, keras.utils.PyDataset):
            x = x[0] if len(x) else None
        elif hasattr(x, "element_spec") and hasattr(x, "take"):
            x = next(iter(x.take(1)), None)
        x = x[0] if isinstance(x, tuple | list) and len(x) else x
        x = x.get("image", x.get("weak")) if isinstance(x, dict) else x
        errors.check_pixels(x)


def class_names(x):
    """Returns the class names of a `train_dataset` as a list, or None."""
    _, sets = getattr(x, "examples", (None, None))
    names = list(getattr(sets, "class_names", ()))
    # Class numbers are no names.
    return None if names == [str(c) for c in range(len(names))] else names


def check_fit(model, x, arguments):
    """Refuses, by name, arguments of `fit` that would train wrongly."""
    if arguments.get("class_weight") is not None:
        raise ValueError(
            "Argument `class_weight` does not work with candidate sets: Keras "
            "would take the weight of the first candidate. Pass per-example "
            "weights as `sample_weight`."
        )
    # A step that is compiled for an accelerator cannot raise for wrong rows.
    _, sets = getattr(x, "examples", ((), ()))
    first, last = 0, len(sets) - 1
    index = x.get("index") if isinstance(x, dict) else None
    if isinstance(index, (np.ndarray, list, tuple)) and np.size(index):
        first, last = np.min(index), np.max(index)
    if first < 0 or last >= model.num_examples:
        raise ValueError(
            "x['index'] holds rows that the pseudo-label table does not have: "
            "they must be whole numbers from 0 to num_examples - 1. Received: "
            f"x['index'] from {first} to {last}, "
            f"num_examples={model.num_examples}"
        )


def make_classifier(model):
    """Returns the classifier of a model, or refuses its `folds` by name."""
    sizes, folds = (model.feature_dim, model.num_classes), model.folds
    if not folds:
        return classifier_head(*sizes)
    fewest = 3 if model.mixup_weight else 2
    if not fewest <= folds <= model.num_examples:
        raise errors.ConfigError(
            f"Argument `folds` must be 0, or from {fewest} to the number of "
            f"examples, {model.num_examples}; mixup needs 3, for two examples "
            f"take two heads away. Received: folds={folds}"
        )
    for kind in type(model).__mro__:
        if "takes_folds" in vars(kind):
            break
        if changed := {"encode", "forward", "method_losses"} & set(vars(kind)):
            raise errors.ConfigError(
                f"{kind.__name__} has its own {', '.join(sorted(changed))}, "
                "which may train a head on its own fold; use folds=0, or see "
                "`takes_folds` in docs/own_method.md. Received: "
                f"folds={folds}"
            )
    return CrossFittedHeads(*sizes, model.num_examples, folds, model.seed)


def check_backbone(backbone):
    """Returns image shape and feature size, or raises if it has none."""
    shape = getattr(backbone, "input_shape", None)
    if not (isinstance(shape, tuple) and len(shape) == 4 and all(shape[1:])):
        raise ValueError(
            "Argument `backbone` must be a keras.Model that takes images of "
            "one fixed shape, (None, height, width, channels), or feature "
            "vectors as (None, 1, 1, features); give it a keras.Input of that "
            f"shape. Received: backbone.input_shape={shape}"
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
    is_known = getattr(shape, "rank", 0) is not None
    if is_known and tuple(shape[1:]) not in (expected, expected[-1:]):
        raise ValueError(
            f"The backbone takes vectors of {expected[-1]} features, (batch, "
            f"{expected[-1]}). Received: shape={tuple(shape)}"
        )


def synchronise_batch_norm(network):
    """Makes batch statistics those of the global batch, on many replicas."""
    if backend.num_replicas() == 1:
        return
    # `_flatten_layers` also has a layer that is an attribute of another.
    for layer in network._flatten_layers():
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.synchronized = True


def rescaling(mean, std):
    """Returns Rescaling's scale and offset: (x / 255 - mean) / std."""
    mean, std = np.asarray(mean, "float64"), np.asarray(std, "float64")
    if not (np.all(std > 0) and np.all(np.isfinite(mean))):
        raise ValueError(
            "Arguments `mean` and `std` must be finite, and `std` positive. "
            f"Received: mean={mean.tolist()}, std={std.tolist()}"
        )
    return (1.0 / (255.0 * std)).tolist(), (-mean / std).tolist()
