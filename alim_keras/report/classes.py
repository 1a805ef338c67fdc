"""What became of each class, as classes.csv."""

import csv
import io

import numpy as np

from alim_keras.files import write_atomically

COLUMNS = (
    "class",
    "group",
    "given",
    "given_mass",
    "settled",
    "training_images",
    "test_images",
    "test_accuracy",
)
GROUPS = ("many", "medium", "few")


def given_counts(candidates):
    """Returns how often each class is a candidate, and with what mass.

    Args:
        candidates: `CandidateSets`.

    Returns:
        int64 `(C,)`, the number of sets that hold the class, and float64
        `(C,)`, the sum over them of one over the set's size.
    """
    num_classes = candidates.num_classes
    mass = np.repeat(1.0 / candidates.sizes, candidates.sizes)
    return (
        np.bincount(candidates.indices, minlength=num_classes),
        np.bincount(candidates.indices, mass, num_classes),
    )


def mass_groups(mass):
    """Returns for each class whether it has many, medium or few.

    The classes are ranked by mass (the lower class first at a tie) and cut
    into three parts of equal size, the first parts larger by one class where
    that does not go. No true label is used.

    >>> mass_groups([5.0, 9.0, 1.0, 7.0]).tolist()
    ['medium', 'many', 'few', 'many']
    """
    order = np.argsort(-np.asarray(mass), kind="stable")
    groups = np.empty(len(order), object)
    for name, part in zip(GROUPS, np.array_split(order, 3), strict=True):
        groups[part] = name
    return groups


def class_accuracies(labels, predicted, num_classes):
    """Returns the share of each class's images that are predicted right.

    `(C,)`, NaN where a class has no image. The mean over the others is what
    scikit-learn calls balanced accuracy.
    """
    labels = np.asarray(labels, "int64")
    right = labels == np.asarray(predicted)
    total = np.bincount(labels, minlength=num_classes)
    hits = np.bincount(labels, right, num_classes)
    return np.where(total > 0, hits / np.maximum(total, 1), np.nan)


def write_classes(path, class_names, candidates, settled, labels, test):
    """Writes classes.csv, one row per class.

    Columns: `class`; `group`, many, medium or few, see `mass_groups`;
    `given` and `given_mass`, see `given_counts`; `settled`, the number of
    rows of labels.csv that carry it; and what uses true labels, empty where
    there are none: `training_images`, `test_images`, `test_accuracy`.

    Args:
        path: File to write.
        class_names: C strings.
        candidates: `CandidateSets`.
        settled: Integers `(N,)`, the settled labels.
        labels: Integers, the true classes where known, or None.
        test: Pair of integers `(n,)`: true and predicted classes, or None.

    Returns:
        Float, the mean of `test_accuracy` over the classes that have test
        images, or None.
    """
    num_classes = len(class_names)
    given, mass = given_counts(candidates)
    training_images = test_images = [""] * num_classes
    accuracies = np.full(num_classes, np.nan)
    if labels is not None:
        training_images = np.bincount(labels, minlength=num_classes)
    if test is not None:
        accuracies = class_accuracies(*test, num_classes)
        test_images = np.bincount(test[0], minlength=num_classes)
    columns = (
        class_names,
        mass_groups(mass),
        given,
        [f"{value:.2f}" for value in mass],
        np.bincount(settled, minlength=num_classes),
        training_images,
        test_images,
        ["" if np.isnan(a) else f"{a:.4f}" for a in accuracies],
    )
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(zip(*columns, strict=True))
    write_atomically(path, out.getvalue())
    known = accuracies[~np.isnan(accuracies)]
    return float(known.mean()) if len(known) else None
