"""The audit of a model and the data that it was trained on."""

import keras
import numpy as np

from alim_keras.data import DiskImages
from alim_keras.data import eval_dataset
from alim_keras.data import image_rows
from alim_keras.data.batches import Examples
from alim_keras.errors import DataError
from alim_keras.methods import PartialLabelModel
from alim_keras.report.examine import examine


def audit(model, dataset, *, class_names=None, ids=None, folds=None, **options):
    """Says what is in each training example, and which sets look wrong.

    Labels come from `folds` where these are given; else from the pseudo
    labels of a model that keeps some; else from the model's predictions. A
    network agrees with the sets that it was trained on, wrong ones included,
    so plain predictions for training examples find the fewest wrong sets.

    Args:
        model: A `PartialLabelModel`, or any `keras.Model` from images to
            class probabilities `(B, C)`; with `folds` it may be None.
        dataset: What `train_dataset` or `eval_dataset` returned, or a pair
            (images, candidates): all N examples, in the order of the pseudo
            labels' rows. Candidates are multi-hot `(N, C)` or
            `SparseCandidates`.
        class_names: C strings. Defaults to the numbers from 0.
        ids: N strings. Defaults to the numbers from 0.
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

    >>> found = alim_keras.audit(model, train, class_names=["cat", "dog"])
    >>> found.labels[found.labels["outside"]]
    >>> found.review.head()
    >>> text = found.to_html("report.html", images)
    """
    examples = _examples(dataset)
    count, num_classes = len(examples), examples.num_classes
    sets = _Sets(examples) if examples.dense is None else examples.dense
    ratio = None
    if folds is not None:
        kind, probabilities = "folds", np.asarray(folds, "float32")
    elif getattr(model, "keeps_pseudo_labels", False):
        kind = "table"
        probabilities, ratio = _table(model, count)
    else:
        kind = "prediction"
        probabilities = _predict(model, examples, num_classes)
    if kind != "table":
        _check_sums(probabilities)
    if ids is None:
        ids = [str(row) for row in range(count)]
    if class_names is None:
        class_names = [str(one) for one in range(num_classes)]
    found = examine(
        probabilities,
        sets,
        class_names=class_names,
        ids=ids,
        kind=kind,
        ratio=ratio,
        **options,
    )
    if kind == "table":
        table = model.pseudo_label_table
        for fact, weight in (
            ("lambda", table.lam),
            ("noise_rate", table.noise_rate),
        ):
            if found.summary[fact] is None and float(weight) > 0:
                found.summary[fact] = float(weight)
    return found


def _examples(dataset):
    """Returns the `Examples` behind a data set."""
    if isinstance(dataset, (tuple, list)) and len(dataset) == 2:
        return Examples(*dataset)
    found = getattr(dataset, "examples", None)
    if found is None:
        raise DataError(
            "The data set must be what alim_keras.data.train_dataset or "
            "eval_dataset returned, without further map or batch, or a pair "
            f"(images, candidates). Received: {type(dataset).__name__}"
        )
    return found


class _Sets:
    """Candidate sets of `Examples` that keep them in another form."""

    def __init__(self, examples):
        self.shape = (len(examples), examples.num_classes)
        self.rows = examples.sets

    def __len__(self):
        return self.shape[0]


def _table(model, count):
    """Returns the pseudo labels, and the candidate ratios if there are any."""
    table = model.pseudo_label_table
    if table.num_examples != count:
        raise DataError(
            "The data set must hold the examples that the model was trained "
            f"on, in their order. Received: {count} examples, a table of "
            f"{table.num_examples}"
        )
    ratio = getattr(table, "candidate_ratio", None)
    if ratio is not None:
        ratio = keras.ops.convert_to_numpy(ratio)
    return np.asarray(model.pseudo_labels.numpy(), "float32"), ratio


def _predict(model, examples, num_classes):
    """Returns the model's probabilities for all examples, `(N, C)`."""
    parts = []
    # As many at a time as a host holds as decoded images.
    pixels = int(np.prod(examples.images.shape[1:]))
    step = max(1, (1 << 28) // max(pixels, 1))
    for start in range(0, len(examples), step):
        images = examples.images[start : start + step]
        if isinstance(model, PartialLabelModel):
            labels = np.zeros(len(images), "int64")
            images = eval_dataset(images, labels, num_classes)
        elif isinstance(images, DiskImages):
            images = image_rows(images, np.arange(len(images)))
        parts.append(np.asarray(model.predict(images, verbose=0), "float32"))
    if not parts:
        return np.zeros((0, num_classes), "float32")
    return np.concatenate(parts)


def _check_sums(probabilities):
    """Raises `DataError` for logits in the place of probabilities."""
    if probabilities.ndim != 2:
        raise DataError(
            "Probabilities must be a row for each example. Received: shape "
            f"{probabilities.shape}"
        )
    sums = probabilities.sum(axis=1, dtype="float64")
    wrong = np.flatnonzero(
        ~(np.abs(sums - 1) < 0.01) | (probabilities < 0).any(axis=1)
    )
    if len(wrong):
        raise DataError(
            f"{len(wrong)} rows are no class probabilities, which sum to 1; "
            "put a softmax behind the logits. Received: row "
            f"{wrong[0]}, sum {sums[wrong[0]]:.4g}"
        )
