"""Small examples to examine, for the tests of the report."""

import numpy as np

from alim_keras.report import examine

NAMES = ["cat", "dog", "elk"]
PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
SETS = np.array([[0, 1, 1], [0, 1, 0], [1, 1, 1]], bool)


def small(**options):
    defaults = {"class_names": NAMES, "ids": ["a", "b", "c"], "kind": "folds"}
    return examine(PROBABILITIES, SETS, **{**defaults, **options})


def planted(count=2000, noise=0.1, only=None, seed=0, signal=4):
    """Honest predictions, sets of one or two, and the truth."""
    num_classes = 10
    stream = np.random.default_rng(seed)
    truth = stream.integers(0, num_classes, count)
    logits = stream.normal(size=(count, num_classes))
    logits[np.arange(count), truth] += signal
    # Bayes's rule for such features.
    probabilities = np.exp(signal * logits)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    wrong = stream.random(count) < noise
    if only is not None:
        wrong &= truth == only
    other = (truth + stream.integers(1, num_classes, count)) % num_classes
    given = np.where(wrong, other, truth)
    sets = np.eye(num_classes, dtype=bool)[given]
    more = (truth + stream.integers(1, num_classes, count)) % num_classes
    sets[np.arange(count), more] |= stream.random(count) < 0.5
    return probabilities, sets, truth


def examined(found, **options):
    probabilities, sets, truth = found
    return examine(
        probabilities,
        sets,
        class_names=[f"c{i}" for i in range(sets.shape[1])],
        ids=[f"{i}.png" for i in range(len(sets))],
        **{"kind": "folds", "labels": truth, **options},
    )
