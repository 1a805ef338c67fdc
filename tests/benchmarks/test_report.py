"""The formulas of the report, against numbers worked by hand."""

import pytest

from alim_keras.benchmarks import material
from alim_keras.benchmarks import report
from alim_keras.errors import ConfigError


def test_efficiency_with_mixup():
    # The limit: 2 x 3 + 3 / 3 = 7, or 2 x 3 + 1.2 = 7.2 as measured.
    found = report.efficiencies(
        {"alim": 10.0, "plain": 3.0, "forward": 1.2}, passes=2
    )
    assert found == pytest.approx(
        {
            "efficiency": 0.7,
            "efficiency_measured": 0.72,
            "views_and_bookkeeping": 0.28,
        }
    )
    # In images/s, for a batch of 30: 3 of 10 x 3 / 7.
    assert found["efficiency"] == pytest.approx((30 / 10) / (30 / 3 * 3 / 7))


def test_efficiency_without_mixup():
    # The limit: 3 + 3 / 3 = 4, which is 3 / 4 of the plain images/s.
    found = report.efficiencies(
        {"alim": 8.0, "plain": 3.0, "forward": 0.6}, passes=1
    )
    assert found["efficiency"] == pytest.approx(0.5)
    assert found["efficiency_measured"] == pytest.approx(3.6 / 8)
    assert found["efficiency"] == pytest.approx((1 / 8) / (1 / 3 * 3 / 4))


def test_input_shapes():
    assert material.image_shape("32x28x3") == (32, 28, 3)
    for wrong in ("32x32", "32x32x4", "0x32x3", "32,32,3", "32x32x3x1"):
        with pytest.raises(ConfigError, match=f"--input_shape={wrong}"):
            material.image_shape(wrong)
