"""Values that flags accept and refuse."""

import os

import pytest
from absl import flags

from alim_keras.cli import kinds


def parser(define):
    flag_values = flags.FlagValues()
    define(kinds.Group(flag_values, "Test"))
    return flag_values["x"].parser


UNIT = parser(lambda group: group.number("x", 0.5, "Text.", low=0, high=1))
POSITIVE = parser(
    lambda group: group.number("x", 1.0, "Text.", low=0, low_open=True)
)
MOMENTUM = parser(
    lambda group: group.number("x", 0, "Text.", low=0, high=1, high_open=True)
)
LAM = parser(
    lambda group: group.number(
        "x", "adaptive", "Text.", low=0, high=1, words=("adaptive",)
    )
)
COUNT = parser(lambda group: group.whole("x", 3, "Text.", low=1))
FREE = parser(lambda group: group.number("x", 3.0, "Text."))
SWITCH = parser(lambda group: group.switch("x", False, "Text."))
CHOICE = parser(
    lambda group: group.choice("x", "step", ("step", "epoch"), "Text.")
)
RATES = (
    "expected a number in [0, 1], oracle, auto, em, cv, gmm, annotated[:FILE]."
)
NOISE = parser(lambda group: group.noise_rate("x", None, "Text."))
TEXT = parser(lambda group: group.text("x", None, "Text."))
PATH = parser(lambda group: group.path("x", None, "Text."))


@pytest.mark.parametrize(
    "kind, text, value",
    [
        (UNIT, "0", 0.0),
        (UNIT, "1", 1.0),
        (UNIT, "5e-1", 0.5),
        (POSITIVE, "1e-9", 1e-9),
        (MOMENTUM, "0.999", 0.999),
        (LAM, "adaptive", "adaptive"),
        (LAM, "0.3", 0.3),
        (COUNT, "1", 1),
        (COUNT, "12", 12),
        (FREE, "-7.5", -7.5),
        (SWITCH, "true", True),
        (SWITCH, "False", False),
        (SWITCH, "0", False),
        (CHOICE, " epoch ", "epoch"),
        (NOISE, "0.3", 0.3),
        (NOISE, "1", 1.0),
        (NOISE, " auto ", "auto"),
        (NOISE, "annotated:/data/x y.csv", "annotated:/data/x y.csv"),
        (TEXT, "a b", "a b"),
        (PATH, "/data/x y", "/data/x y"),
    ],
)
def test_accepts(kind, text, value):
    result = kind.parse(text)
    assert result == value and type(result) is type(value)


@pytest.mark.parametrize(
    "kind, text, expected",
    [
        (NOISE, "nan", RATES),
        (NOISE, "-0.1", RATES),
        (NOISE, "1.01", RATES),
        (NOISE, "annotated:", f"{RATES} Did you mean annotated?"),
        (NOISE, "0.3:x", RATES),
        (NOISE, "autos", f"{RATES} Did you mean auto?"),
        (UNIT, "nan", "expected a number in [0, 1]."),
        (UNIT, "-nan", "expected a number in [0, 1]."),
        (UNIT, "inf", "expected a number in [0, 1]."),
        (UNIT, "-0.1", "expected a number in [0, 1]."),
        (UNIT, "1.0001", "expected a number in [0, 1]."),
        (UNIT, "", "expected a number in [0, 1]."),
        (UNIT, "half", "expected a number in [0, 1]."),
        (UNIT, "0,5", "expected a number in [0, 1]."),
        (POSITIVE, "0", "expected a number above 0."),
        (POSITIVE, "inf", "expected a number above 0."),
        (POSITIVE, "nan", "expected a number above 0."),
        (MOMENTUM, "1", "expected a number in [0, 1)."),
        (LAM, "adaptiv", "expected a number in [0, 1] or adaptive."),
        (LAM, "nan", "expected a number in [0, 1] or adaptive."),
        (COUNT, "0", "expected a whole number of at least 1."),
        (COUNT, "2.5", "expected a whole number of at least 1."),
        (COUNT, "1e3", "expected a whole number of at least 1."),
        (COUNT, "nan", "expected a whole number of at least 1."),
        (FREE, "nan", "expected a number."),
        (FREE, "1e999", "expected a number."),
        (SWITCH, "maybe", "expected true or false."),
        (CHOICE, "steps", "expected one of step, epoch. Did you mean step?"),
        (CHOICE, "xyz", "expected one of step, epoch."),
        (TEXT, "", "expected text of one line, not empty."),
        (TEXT, "  ", "expected text of one line, not empty."),
        (TEXT, "a\nb", "expected text of one line, not empty."),
        (PATH, "", "expected text of one line, not empty."),
    ],
)
def test_refuses(kind, text, expected):
    with pytest.raises(ValueError) as caught:
        kind.parse(text)
    assert str(caught.value) == expected


def test_whole_number_too_long_for_a_float_is_refused():
    with pytest.raises(ValueError, match="expected a whole number"):
        COUNT.parse("1" + "0" * 400)


def test_path_expands_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert PATH.parse("~/tfds") == os.path.join("/home/ada", "tfds")
    # Text stays as it is: it may be a name.
    assert TEXT.parse("~/tfds") == "~/tfds"


def test_default_outside_the_bounds_is_refused_at_definition():
    with pytest.raises(flags.IllegalFlagValueError):
        parser(lambda group: group.number("x", 2.0, "Text.", low=0, high=1))


def test_near():
    known = ["epochs", "batch_size", "seed"]
    assert kinds.near("epoch", known) == " Did you mean epochs?"
    assert kinds.near("epoch", known, "--{}") == " Did you mean --epochs?"
    assert kinds.near("zzz", known) == ""
