"""classes.csv: how often each class was given and settled, and its accuracy."""

import numpy as np
import pandas as pd

from alim_keras.report.labels import write_table

GROUPS = ("many", "medium", "few")


def given_counts(candidates):
    """Returns how often each class is a candidate, and with what mass.

    int64 `(C,)`, the number of sets that hold it, and float64 `(C,)`, the sum
    over them of one over the set's size, or of its share of the weights.
    """
    num_classes = candidates.num_classes
    return (
        np.bincount(candidates.indices, minlength=num_classes),
        np.bincount(candidates.indices, candidates.shares, num_classes),
    )


def mass_groups(mass):
    """Returns for each class whether it has many, medium or few.

    The classes are ranked by mass (the lower class first at a tie) and cut
    into three parts, as equal as can be, the first parts the larger ones.
    """
    order = np.argsort(-np.asarray(mass), kind="stable")
    groups = np.empty(len(order), object)
    for name, part in zip(GROUPS, np.array_split(order, 3), strict=True):
        groups[part] = name
    return groups


def write_classes(path, candidates, settled, labels, test):
    """Writes classes.csv, one row per class.

    Columns: `class`; `group`, see `mass_groups`; `given` and `given_mass`, see
    `given_counts`; `settled`, the number of rows of labels.csv that carry it;
    and what uses true labels, empty where there are none: `training_images`,
    `test_images`, `test_accuracy`.

    Args:
        path: File to write.
        candidates: `CandidateSets`.
        settled: Integers `(N,)`, the settled labels.
        labels: Integers, the true classes where known, or None.
        test: Pair of integers `(n,)`: true and predicted classes, or None.

    Returns:
        Float, the mean of `test_accuracy` over the classes that have test
        images (scikit-learn's balanced accuracy), or None.
    """

    def count(classes):
        return np.bincount(classes, minlength=candidates.num_classes)

    given, mass = given_counts(candidates)
    frame = pd.DataFrame(
        {
            "class": np.array(candidates.class_names, object),
            "group": mass_groups(mass),
            "given": given,
            "given_mass": mass,
            "settled": count(settled),
            "training_images": None if labels is None else count(labels),
            "test_images": None if test is None else count(test[0]),
            "test_accuracy": np.nan,
        }
    )
    if test is not None:
        true, predicted = test
        # 0 / 0 is NaN: a class without an image.
        hits = pd.Series(count(true[true == predicted]))
        frame["test_accuracy"] = hits / frame["test_images"]
    write_table(path, frame)
    mean = frame["test_accuracy"].mean()
    return None if np.isnan(mean) else float(mean)
