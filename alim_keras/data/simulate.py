"""Simulated candidate sets: the three protocols of the published tables.

docs/data.md has their rules, and how the stream "legacy" consumes the random
numbers of the authors' code.

References:
- [Xu et al., 2023, ALIM](https://arxiv.org/abs/2301.12077);
  zeroQiaoba/ALIM 5c4e46a, utils/utils_algo.py and datasets/cifar100H.py
- [Wang et al., 2022, PiCO+](https://arxiv.org/abs/2201.08984);
  hbzju/PiCO ad687bb, utils_plus/utils_algo.py
"""

import random

import numpy as np

from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import default_ids
from alim_keras.data.checks import generator
from alim_keras.data.checks import validate_labels
from alim_keras.errors import ConfigError
from alim_keras.errors import check_choice
from alim_keras.errors import check_number

PROTOCOLS = ("flip", "pico", "superclass")
STREAMS = ("default", "legacy")
# Rows are drawn in blocks of about this many numbers, to bound the memory.
_BLOCK = 1 << 22


def simulate_candidates(
    labels,
    num_classes,
    *,
    ambiguity,
    noise_level,
    protocol="flip",
    seed=0,
    stream="default",
    superclasses=None,
    ids=None,
    class_names=None,
):
    """Draws a noisy candidate set for every example from its true label.

    The sets of a subset are not those of the whole set restricted to it:
    choose the examples first, then draw. With `stream="default"` the order
    of the rows does not matter, because draws go to the sorted ids; with
    `stream="legacy"` it does, as in the authors' code.

    Args:
        labels: Integers `(N,)`, the true classes, from 0.
        num_classes: Integer C.
        ambiguity: Float in [0, 1], q: the probability of a wrong class.
        noise_level: Float in [0, 1], eta: how often the truth is left out.
        protocol: `"flip"`, `"pico"` or `"superclass"`.
        seed: Integer >= 0.
        stream: `"default"` draws from a `numpy.random.Generator` (PCG64)
            seeded with (seed, protocol). `"legacy"` gives the sets of the
            authors' code, bit for bit, from (seed, labels) in their order.
        superclasses: Integers `(C,)`, each class's superclass; only for
            `"superclass"`, such as `CIFAR100_SUPERCLASSES`.
        ids: Strings `(N,)`, unique. Defaults to `"train_00000"` and so on.
        class_names: Strings `(C,)`. Defaults to the numbers.

    Returns:
        A `CandidateSets`; its `provenance` holds all settings.

    Raises:
        ConfigError: A setting out of its range, an unknown protocol, or
            settings under which a set can never hold any class.
        DataError: Labels out of range, ids not unique.

    Example:

    >>> sets = simulate_candidates(
    ...     [0, 1, 2], 3, ambiguity=0.0, noise_level=0.0)
    >>> sets.dense().astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    q = check_number("ambiguity", ambiguity, 0, 1)
    eta = check_number("noise_level", noise_level, 0, 1)
    seed = check_number("seed", seed, 0, whole=True)
    check_choice("protocol", protocol, PROTOCOLS)
    check_choice("stream", stream, STREAMS)
    labels = validate_labels(labels, num_classes, ids=ids)
    ids = default_ids(len(labels)) if ids is None else np.asarray(ids, str)
    groups = _groups(protocol, superclasses, num_classes)
    alone = np.bincount(groups)[groups[labels]] == 1
    if protocol != "flip" and eta == 1 and (q == 0 or alone.any()):
        raise ConfigError(
            "Every row would be empty. Raise `ambiguity` or lower "
            f"`noise_level`. Received: ambiguity={q}, noise_level={eta}"
        )
    if stream == "legacy":
        order, rng = np.arange(len(labels)), np.random.RandomState(seed)
    else:
        order = np.argsort(ids, kind="stable")
        rng = generator(seed, f"candidates/{protocol}")
    left_clean = 0
    if protocol == "flip":
        python = random.Random(seed) if stream == "legacy" else None
        ordered, left_clean = _flip(
            labels[order], num_classes, q, eta, rng, python
        )
    else:
        draw = _legacy_rows if stream == "legacy" else _rows
        ordered = draw(labels[order], num_classes, q, eta, rng, groups)
    sets = np.empty_like(ordered)
    sets[order] = ordered
    inside = sets[np.arange(len(labels)), labels]
    provenance = {
        "kind": "simulated",
        "protocol": protocol,
        "ambiguity": q,
        "noise_level": eta,
        "seed": seed,
        "stream": stream,
        "realised_noise": float(1.0 - inside.mean()),
        "left_clean": left_clean,
    }
    return CandidateSets.from_dense(
        sets,
        ids,
        class_names,
        provenance=provenance,
        source="the simulated sets",
    )


def _groups(protocol, superclasses, num_classes):
    """Returns each class's group: a class's set stays inside its group."""
    if protocol != "superclass":
        return np.zeros(num_classes, np.int64)
    if superclasses is None:
        raise ConfigError(
            "protocol='superclass' needs a data set with superclasses, such "
            "as cifar100h; use 'flip' or 'pico' for this one"
        )
    groups = np.asarray(superclasses)
    if groups.shape != (num_classes,):
        raise ConfigError(
            f"`superclasses` must hold one integer for each of the "
            f"{num_classes} classes. Received: shape={groups.shape}"
        )
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _blocks(num_examples, num_classes):
    step = max(1, _BLOCK // num_classes)
    for start in range(0, num_examples, step):
        yield slice(start, min(start + step, num_examples))


def _flip(labels, num_classes, q, eta, rng, python):
    """Returns the sets of `flip`, and how many were left clean.

    `python` draws, in the legacy stream, which are noisy and with what.
    """
    sets = np.empty((len(labels), num_classes), bool)
    for rows in _blocks(len(labels), num_classes):
        sets[rows] = rng.random(sets[rows].shape) < q
    sets[np.arange(len(labels)), labels] = True
    outside = num_classes - sets.sum(1)
    if python is None:
        noisy = np.flatnonzero(rng.random(len(labels)) < eta)
        position = rng.random(len(labels))[noisy]
        ranks = (position * outside[noisy]).astype(np.int64)
    else:
        noisy, ranks = _legacy_noisy(outside.tolist(), eta, python)
    able = outside[noisy] > 0
    _swap_in(sets, noisy[able], labels[noisy[able]], ranks[able])
    return sets, int(np.sum(~able))


def _legacy_noisy(outside, eta, python):
    noisy, ranks = [], []
    for row, count in enumerate(outside):
        if python.uniform(0, 1) <= eta:
            noisy.append(row)
            ranks.append(python.randint(0, count - 1) if count else 0)
    return np.array(noisy, np.int64), np.array(ranks, np.int64)


def _rows(labels, num_classes, q, eta, rng, groups):
    """Returns the sets of the `pico` and `superclass` protocols."""
    sets = np.empty((len(labels), num_classes), bool)
    for rows in _blocks(len(labels), num_classes):
        chance = _chances(labels[rows], q, eta, groups)
        sets[rows] = rng.random(chance.shape) < chance
    # An empty row is not drawn again and again: its first candidate comes
    # from the law of "the first success, given that there is one", the later
    # ones from their own probabilities. It is the same law, in one draw.
    empty = np.flatnonzero(~sets.any(1))
    for part in _blocks(len(empty), num_classes):
        rows = empty[part]
        chance = _chances(labels[rows], q, eta, groups)
        # log1p and expm1 keep the digits of a very small q.
        success = -np.expm1(np.cumsum(np.log1p(-chance), axis=1))
        threshold = rng.random(len(rows)) * success[:, -1]
        first = (success <= threshold[:, None]).sum(1)
        later = np.arange(num_classes)[None, :] > first[:, None]
        sets[rows] = (rng.random(chance.shape) < chance) & later
        sets[rows, first] = True
    return sets


def _chances(labels, q, eta, groups):
    """Returns the probability of each class to enter, `(n, C)`."""
    chance = np.where(groups[labels][:, None] == groups[None, :], q, 0.0)
    chance[np.arange(len(labels)), labels] = 1.0 - eta
    return chance


def _swap_in(sets, rows, labels, ranks):
    """Moves each row's true class out and its `ranks`-th outsider in."""
    outsiders = np.cumsum(~sets[rows], axis=1, dtype=np.int32)
    newcomer = (outsiders <= ranks[:, None]).sum(1)
    sets[rows, labels] = False
    sets[rows, newcomer] = True


def _legacy_rows(labels, num_classes, q, eta, rng, groups):
    """Returns the authors' `pico` and `superclass` sets."""
    for rows in _blocks(len(labels), num_classes):
        rng.random((rows.stop - rows.start, num_classes))
    # Of each true class; what is outside its group is never drawn.
    chances = np.where(groups[:, None] == groups[None, :], q, -1.0)
    np.fill_diagonal(chances, 1.0 - eta)
    sets = np.zeros((len(labels), num_classes), bool)
    for row, label in zip(sets, labels):
        while not row.any():
            draws = rng.random(num_classes)
            np.less_equal(draws, chances[label], out=row)
    return sets
