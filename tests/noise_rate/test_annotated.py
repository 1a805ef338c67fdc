import numpy as np
import pytest

from alim_keras import noise_rate
from alim_keras.errors import DataError
from alim_keras.noise_rate import wilson


def test_wilson_by_hand():
    # z^2 = 3.84146; (.25 + 3.84146 / 40) / (1 + 3.84146 / 20) = 0.290289;
    # z sqrt(.25 * .75 / 20 + 3.84146 / 1600) / 1.192073 = 0.178428
    low, high = wilson(5, 20)
    assert low == pytest.approx(0.290289 - 0.178428, abs=1e-4)
    assert high == pytest.approx(0.290289 + 0.178428, abs=1e-4)
    # None of 10: 0 to z^2 / (n + z^2) = 3.84146 / 13.84146
    assert wilson(0, 10) == (0.0, pytest.approx(0.277533, abs=1e-5))
    assert wilson(10, 10) == (pytest.approx(1 - 0.277533, abs=1e-5), 1.0)


def test_counts_labels_outside_their_sets():
    candidates = np.tile([[1, 1, 0]], (20, 1))
    labels = [0] * 9 + [1] * 6 + [2] * 5
    found = noise_rate.annotated(labels, candidates)
    assert found.value == 0.25
    assert (found.low, found.high) == wilson(5, 20)
    assert found.details["wrong"] == 5 and found.details["labels"] == 20
    assert "5 of 20" in found.reason and "60 more would" in found.reason


def test_no_labels_are_refused():
    with pytest.raises(DataError, match="0 labels"):
        noise_rate.annotated([], np.zeros((0, 3)))
