"""The authors' sets, bit for bit.

The expected values were written down from runs of the authors' own functions
(zeroQiaoba/ALIM 5c4e46a and hbzju/PiCO ad687bb) outside this repository.
"""

import hashlib

import numpy as np
import pytest

from alim_keras.data import CIFAR100_SUPERCLASSES
from alim_keras.data import simulate_candidates

LABELS = [2, 0, 1, 3, 1, 0, 2, 3]


def legacy(labels, num_classes, protocol, q, eta, seed):
    groups = CIFAR100_SUPERCLASSES if protocol == "superclass" else None
    return simulate_candidates(
        labels,
        num_classes,
        ambiguity=q,
        noise_level=eta,
        protocol=protocol,
        seed=seed,
        stream="legacy",
        superclasses=groups,
    ).dense()


@pytest.mark.parametrize(
    ("protocol", "q", "eta", "seed", "expected"),
    [
        ("flip", 0.5, 0.5, 0, "0010 1010 0010 0011 1001 1010 1100 0111"),
        ("flip", 0.3, 1.0, 1, "1000 0111 0010 1110 1011 0010 1001 1110"),
        ("flip", 0.9, 1.0, 7, "1111 1111 1111 1111 1011 0111 1101 1111"),
        ("pico", 0.5, 0.5, 0, "1010 1101 0011 1101 0111 0111 1101 1101"),
        ("pico", 0.3, 1.0, 1, "1001 0110 1001 0100 1000 0001 1001 1000"),
        ("pico", 0.9, 1.0, 7, "1101 0111 1011 1110 1011 0111 1101 0110"),
        ("pico", 0.3, 0.0, 5, "0010 1000 1100 1001 0100 1111 0010 0001"),
    ],
)
def test_small_sets(protocol, q, eta, seed, expected):
    sets = legacy(LABELS, 4, protocol, q, eta, seed)
    rows = ["".join(map(str, row)) for row in sets.astype(int)]
    assert rows == expected.split()


@pytest.mark.parametrize(
    ("protocol", "count", "num_classes", "q", "eta", "seed", "expected"),
    [
        ("flip", 50000, 10, 0.5, 0.3, 0, "94307ffdb324cb47"),
        ("flip", 50000, 100, 0.05, 0.3, 0, "8222f25e32c56740"),
        ("pico", 50000, 10, 0.1, 0.3, 0, "b2fc95109a62837a"),
        ("pico", 5994, 200, 0.05, 0.2, 0, "f70e5b653fb56ff8"),
        ("superclass", 50000, 100, 0.5, 0.2, 0, "c4a116b811533d7a"),
        ("superclass", 50000, 100, 0.1, 0.5, 3, "5ed1c21e4230f951"),
    ],
)
def test_full_size_sets(protocol, count, num_classes, q, eta, seed, expected):
    labels = np.arange(count) % num_classes
    sets = legacy(labels, num_classes, protocol, q, eta, seed)
    digest = hashlib.sha256(np.packbits(sets, axis=1).tobytes())
    assert digest.hexdigest()[:16] == expected
