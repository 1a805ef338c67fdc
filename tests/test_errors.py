"""The checks and hints that all parts share."""

import math

import pytest

from alim_keras import errors


def test_near_names_are_offered():
    assert errors.did_you_mean("Pcio", ["pico", "rc"]) == " Did you mean pico?"
    assert errors.did_you_mean("pico_", ["PiCO", "pico+"]).endswith("pico+?")
    assert errors.did_you_mean("x", ["pico", "rc"]) == ""


def test_a_choice_is_named_with_what_was_meant():
    errors.check_choice("norm", None, (None, "scale"))
    with pytest.raises(
        errors.ConfigError, match="Did you mean scale.*norm='scal'"
    ):
        errors.check_choice("norm", "scal", (None, "scale"))


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        (1, {}, 1.0),
        (3.0, {"whole": True}, 3),
        (2**60 + 1, {"whole": True}, 2**60 + 1),
        ([0.5, 1], {"count": 2}, (0.5, 1.0)),
        (None, {"optional": True}, None),
        (1, {"high": 1}, 1.0),
    ],
)
def test_numbers_that_fit(value, options, expected):
    result = errors.check_number("x", value, **options)
    assert result == expected and type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "options", "words"),
    [
        (math.nan, {}, "a finite number. Received: x=nan"),
        (math.inf, {"low": 0}, "a finite number from 0."),
        ("1", {}, "x='1'"),
        (True, {}, "x=True"),
        (None, {}, "x=None"),
        (0, {"low": 0, "low_open": True}, "above 0"),
        (1.5, {"whole": True, "low": 1}, "a whole number from 1"),
        (2, {"low": 0, "high": 1}, "from 0 up to 1"),
        ((1, 2, 3), {"count": 2, "low": 0}, "2 values, each .* from 0"),
        (5, {"optional": True, "high": 4}, "up to 4, or None"),
    ],
)
def test_numbers_that_do_not_fit_are_named(value, options, words):
    with pytest.raises(
        errors.ConfigError, match=f"Argument `x` must be.*{words}"
    ):
        errors.check_number("x", value, **options)


def test_ranges_by_kind():
    errors.check_ranges(a=(0.5, "share"), b=((0, 1), "share"), c=(3, "count"))
    for value, kind in [
        (1.1, "share"),
        ((0.5, math.nan), "share"),
        (-1, "weight"),
        (0, "positive"),
        (0, "count"),
        (0.5, "whole"),
    ]:
        with pytest.raises(errors.ConfigError, match="`b`"):
            errors.check_ranges(a=(1, "share"), b=(value, kind))
