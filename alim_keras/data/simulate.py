"""Simulated candidate sets: the three protocols of the published tables.

docs/data.md has their rules, and those of the stream "legacy". References:
- [Xu et al., 2023, ALIM](https://arxiv.org/abs/2301.12077);
  zeroQiaoba/ALIM 5c4e46a, utils/utils_algo.py and datasets/cifar100H.py
- [Wang et al., 2022, PiCO+](https://arxiv.org/abs/2201.08984);
  hbzju/PiCO ad687bb, utils_plus/utils_algo.py
"""

import random

import numpy as np

from alim_keras import errors
from alim_keras.data import checks
from alim_keras.data.candidates import CandidateSets

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

    The sets of a subset are not those of the whole set restricted to it.

    Args:
        labels: Integers `(N,)`, the true classes, from 0.
        num_classes: Integer C.
        ambiguity: Float in [0, 1], q: the probability of a wrong class.
        noise_level: Float in [0, 1], eta: how often the truth is left out.
        protocol: `"flip"`, `"pico"` or `"superclass"`.
        seed: Integer >= 0.
        stream: `"default"`, for which the order of the rows does not matter,
            or `"legacy"`: the sets of the authors' code, bit for bit.
        superclasses: Integers `(C,)`, each class's superclass; only for
            `"superclass"`, such as `CIFAR100_SUPERCLASSES`.
        ids: Strings `(N,)`, unique. Defaults to `"train_00000"` and so on.
        class_names: Strings `(C,)`. Defaults to the numbers.

    Returns:
        A `CandidateSets`; its `provenance` holds all settings.

    Raises:
        ConfigError: A setting out of its range, or settings under which a set
            can never hold any class.
        DataError: Labels out of range, ids not unique.

    Example:

    >>> sets = simulate_candidates(
    ...     [0, 1, 2], 3, ambiguity=0.0, noise_level=0.0)
    >>> sets.dense().astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    q = errors.check_number("ambiguity", ambiguity, 0, 1)
    eta = errors.check_number("noise_level", noise_level, 0, 1)
    seed = errors.check_number("seed", seed, 0, whole=True)
    errors.check_choice("protocol", protocol, ("flip", "pico", "superclass"))
    errors.check_choice("stream", stream, ("default", "legacy"))
    labels = checks.validate_labels(labels, num_classes, ids=ids)
    ids = checks.default_ids(len(labels)) if ids is None else ids
    groups = _groups(protocol, superclasses, num_classes)
    alone = np.bincount(groups)[groups[labels]] == 1
    if protocol != "flip" and eta == 1 and (q == 0 or alone.any()):
        raise errors.ConfigError(
            "Every row would be empty. Raise `ambiguity` or lower "
            f"`noise_level`. Received: ambiguity={q}, noise_level={eta}"
        )
    is_legacy, left_clean = stream == "legacy", 0
    if is_legacy:
        order, rng = np.arange(len(labels)), np.random.RandomState(seed)
    else:
        order = np.argsort(np.asarray(ids, str), kind="stable")
        rng = checks.generator(seed, f"candidates/{protocol}")
    sets = np.empty((len(labels), num_classes), bool)
    if protocol == "flip":
        # The authors draw which are noisy, and with what, from `random`.
        python = random.Random(seed) if is_legacy else None
        sets[order], left_clean = _flip(
            labels[order], num_classes, q, eta, rng, python
        )
    else:
        draw = _legacy_rows if is_legacy else _rows
        sets[order] = draw(labels[order], num_classes, q, eta, rng, groups)
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
        raise errors.ConfigError(
            "protocol='superclass' needs a data set with superclasses, such "
            "as cifar100h; use 'flip' or 'pico' for this one"
        )
    groups = np.asarray(superclasses, int)
    if groups.shape != (num_classes,):
        raise errors.ConfigError(
            f"`superclasses` must hold one integer for each of the "
            f"{num_classes} classes. Received: shape={groups.shape}"
        )
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _blocks(num_examples, num_classes):
    step = max(1, _BLOCK // num_classes)
    for start in range(0, num_examples, step):
        yield slice(start, min(start + step, num_examples))


def _flip(labels, num_classes, q, eta, rng, python):
    """Returns the sets of `flip`, and how many were left clean."""
    sets = np.empty((len(labels), num_classes), bool)
    for rows in _blocks(len(labels), num_classes):
        sets[rows] = rng.random(sets[rows].shape) < q
    sets[np.arange(len(labels)), labels] = True
    outside = num_classes - sets.sum(1)
    if python is None:
        is_noisy = rng.random(len(labels)) < eta
        ranks = (rng.random(len(labels)) * outside).astype(np.int64)
    else:
        is_noisy, ranks = np.zeros(len(labels), bool), np.zeros_like(labels)
        for row, count in enumerate(outside.tolist()):
            is_noisy[row] = python.uniform(0, 1) <= eta
            if is_noisy[row] and count:
                ranks[row] = python.randint(0, count - 1)
    rows = np.flatnonzero(is_noisy & (outside > 0))
    # The true class moves out, the outsider of this rank moves in.
    outsiders = np.cumsum(~sets[rows], axis=1, dtype=np.int32)
    newcomer = (outsiders <= ranks[rows, None]).sum(1)
    sets[rows, labels[rows]] = False
    sets[rows, newcomer] = True
    return sets, int(is_noisy.sum()) - len(rows)


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


def _legacy_rows(labels, num_classes, q, eta, rng, groups):
    """Returns the authors' `pico` and `superclass` sets."""
    for rows in _blocks(len(labels), num_classes):
        rng.random((rows.stop - rows.start, num_classes))
    chances = _chances(np.arange(num_classes), q, eta, groups)
    sets = np.zeros((len(labels), num_classes), bool)
    for row, label in zip(sets, labels):
        while not row.any():
            draws = rng.random(num_classes)
            np.less_equal(draws, chances[label], out=row)
    return sets
