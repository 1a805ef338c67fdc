"""The audit of a model and the data that it was trained on."""

import dataclasses

import keras
import numpy as np

from alim_keras.data import eval_dataset
from alim_keras.data import image_rows
from alim_keras.data.checks import row_ids
from alim_keras.data.pipeline import examples_of
from alim_keras.errors import DataError
from alim_keras.methods import PartialLabelModel
from alim_keras.report.examination import examine
from alim_keras.report.labels import blocks


def audit(model, dataset, *, class_names=None, ids=None, folds=None, **options):
    """Settles each training example's label and ranks sets that look wrong.

    Labels come from `folds` where these are given; else from the pseudo
    labels of a model that keeps some; else from the model's predictions. A
    network agrees with the sets that it was trained on, wrong ones included,
    so plain predictions for training examples find the fewest wrong sets.

    Args:
        model: A `PartialLabelModel`, or any `keras.Model` from images to
            class probabilities `(B, C)`; with `folds` it may be None.
        dataset: The data set that `train_dataset` or `eval_dataset` returned,
            or a pair (images, candidates): all N examples, in the order of
            the pseudo labels' rows. Candidates are multi-hot `(N, C)` or
            `CandidateSets`.
        class_names: C strings. Defaults to those of the sets, if they have
            any, or the numbers from 0.
        ids: N strings. Defaults likewise.
        folds: Floats `(N, C)`, probabilities from networks that were trained
            without the example they predict, see `noise_rate.out_of_fold`.
        **options: `votes`, `noise_rate`, `labels`, `known`, `history`,
            `name`, `review`, `facts`, `as_given`: see `report.examine`.

    Returns:
        An `Audit`: pandas data frames, `write(folder)` and `to_html(path)`.

    Raises:
        DataError: If the data do not fit the model, or the model does not
            give probabilities.

    Example:

    >>> audit = alim_keras.audit(model, train, class_names=["cat", "dog"])
    >>> audit.labels[audit.labels["outside"]]
    >>> audit.review.head()
    >>> text = audit.to_html("report.html", images)
    """
    images, sets = examples_of(dataset)
    ratio = table = None
    if folds is not None:
        kind, probabilities = "folds", np.asarray(folds, "float32")
    elif isinstance(model, PartialLabelModel) and model.keeps_pseudo_labels:
        kind, table = "table", model.pseudo_label_table
        probabilities, ratio = _table(model, len(sets))
    else:
        kind = "prediction"
        probabilities = _predict(model, images, sets.num_classes)
    result = examine(
        probabilities,
        _named(sets, ids, class_names),
        kind=kind,
        ratio=ratio,
        **options,
    )
    if table is not None:
        for fact, weight in (
            ("lambda", table.lam),
            ("noise_rate", table.noise_rate),
        ):
            if result.summary[fact] is None and float(weight) > 0:
                result.summary[fact] = float(weight)
    return result


def _named(sets, ids, class_names):
    """Returns the sets with the ids and class names that were asked for."""
    if ids is None:
        ids = sets.ids
        if np.array_equal(ids, row_ids(len(sets))):
            # The sets were given without ids.
            ids = [str(row) for row in range(len(sets))]
    if class_names is None:
        class_names = sets.class_names
    if (len(ids), len(class_names)) != sets.shape:
        raise DataError(
            f"An id for each of {len(sets)} examples and a name for each of "
            f"{sets.num_classes} classes were expected. Received: {len(ids)} "
            f"ids, {len(class_names)} class names"
        )
    return dataclasses.replace(sets, ids=ids, class_names=class_names)


def _table(model, count):
    """Returns the pseudo labels and the candidate ratios, NaN if unknown."""
    table = model.pseudo_label_table
    if table.num_examples != count:
        raise DataError(
            "The data set must hold the examples that the model was trained "
            f"on, in their order. Received: {count} examples, a table of "
            f"{table.num_examples}"
        )
    ratio = keras.ops.convert_to_numpy(table.candidate_ratio)
    return np.asarray(model.pseudo_labels.numpy(), "float32"), ratio


def _predict(model, images, num_classes):
    """Returns the model's probabilities for all examples, `(N, C)`."""
    parts = []
    for rows in blocks(len(images), int(np.prod(images.shape[1:]))):
        part = images[rows]
        if isinstance(model, PartialLabelModel):
            labels = np.zeros(len(rows), "int64")
            part = eval_dataset(part, labels, num_classes)
        else:
            part = image_rows(part, np.arange(len(rows)))
        parts.append(np.asarray(model.predict(part, verbose=0), "float32"))
    return np.concatenate(parts)
