"""The random numbers of the authors' code, in the order it consumes them.

Their generators seed Python's `random` and `numpy.random` with the run's
seed and then draw, for the whole training set in its official order:

- `flip`: one numpy matrix of uniforms for all examples and classes; then,
  example by example, one `random.uniform`, and for a noisy example one
  `random.randint` over the classes outside its set.
- `pico` and `superclass`: one numpy matrix that is thrown away; then, example
  by example, a row of uniforms, again until the row holds a class.

Here the same numbers are drawn in blocks; only the walk that decides who
gets which number is a loop, over examples, with a few scalar operations.
Their code takes the number of classes from the labels, so a comparison makes
sense where every class occurs.

References:
- zeroQiaoba/ALIM 5c4e46a, utils/utils_algo.py and datasets/cifar100H.py
- hbzju/PiCO ad687bb, utils_plus/utils_algo.py
"""

import random

import numpy as np

from alim_keras.errors import ConfigError

_BLOCK = 1 << 22
_MOST_REDRAWS = 100.0


def swap_in(sets, rows, labels, ranks):
    """Moves each row's true class out and its `ranks`-th outsider in.

    Args:
        sets: Bool `(num_examples, num_classes)`, changed in place.
        rows: Integers `(k,)`, the rows to change; none holds every class.
        labels: Integers `(k,)`, the true classes of these rows.
        ranks: Integers `(k,)`, which of the row's classes outside the set,
            counted upwards from 0, comes in.
    """
    outsiders = np.cumsum(~sets[rows], axis=1, dtype=np.int32)
    newcomer = (outsiders <= ranks[:, None]).sum(1)
    sets[rows, labels] = False
    sets[rows, newcomer] = True


def _numpy_stream(seed):
    if seed >= 2**32:
        raise ConfigError(
            "stream='legacy' takes seeds below 2**32, as the authors' code. "
            f"Received: seed={seed}"
        )
    return np.random.RandomState(seed)


def flip(labels, num_classes, q, eta, seed, groups):
    """The authors' `flip` sets; returns them and how many were left clean."""
    del groups
    stream = _numpy_stream(seed)
    sets = np.empty((len(labels), num_classes), bool)
    step = max(1, _BLOCK // num_classes)
    for start in range(0, len(labels), step):
        part = sets[start : start + step]
        np.less(stream.uniform(0, 1, part.shape), q, out=part)
    sets[np.arange(len(labels)), labels] = True
    outside = (num_classes - sets.sum(1)).tolist()

    python = random.Random(seed)
    rows, ranks, left_clean = [], [], 0
    for row, count in enumerate(outside):
        if python.uniform(0, 1) <= eta:
            if count:
                rows.append(row)
                ranks.append(python.randint(0, count - 1))
            else:
                left_clean += 1
    rows = np.array(rows, np.int64)
    swap_in(sets, rows, labels[rows], np.array(ranks, np.int64))
    return sets, left_clean


def rows(labels, num_classes, q, eta, seed, groups):
    """The authors' `pico` and `superclass` sets; nobody is left clean."""
    keep = 1.0 - eta
    others = np.bincount(groups)[groups[labels]] - 1
    accepted = 1.0 - (1.0 - keep) * (1.0 - q) ** others
    if accepted.size and accepted.min() * _MOST_REDRAWS < 1.0:
        raise ConfigError(
            "stream='legacy' would draw a row more than "
            f"{_MOST_REDRAWS:.0f} times until it holds a class; use "
            f"stream='default'. Received: ambiguity={q}, noise_level={eta}"
        )

    stream = _numpy_stream(seed)
    step = max(1, _BLOCK // num_classes)
    for start in range(0, len(labels), step):
        stream.uniform(0, 1, (min(step, len(labels) - start), num_classes))

    columns = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[columns], prepend=-1))
    sets = np.zeros((len(labels), num_classes), bool)
    done = 0
    while done < len(labels):
        draws = stream.uniform(
            0, 1, (min(step, len(labels) - done + 64), num_classes)
        )
        hits = draws <= q
        # Candidates of each row among the classes of each group.
        counts = np.add.reduceat(
            hits[:, columns], starts, axis=1, dtype=np.int32
        )
        taken = _walk(draws, counts, labels[done:], groups, q, keep)
        truth = labels[done : done + len(taken)]
        own = np.arange(len(taken))
        part = hits[taken] & (groups[truth][:, None] == groups[None, :])
        part[own, truth] = draws[taken, truth] <= keep
        sets[done : done + len(taken)] = part
        done += len(taken)
    return sets, 0


def _walk(draws, counts, labels, groups, q, keep):
    """Returns, for as many examples as the rows suffice, the row each takes."""
    counts, group = counts.tolist(), groups.tolist()
    taken, row, last = [], 0, len(counts)
    for label in labels.tolist():
        while row < last:
            count = counts[row][group[label]]
            row += 1
            if count > 1:
                break
            value = draws[row - 1, label]
            if value <= keep or count > (value <= q):
                break
        else:
            break
        taken.append(row - 1)
    return np.array(taken, np.int64)
