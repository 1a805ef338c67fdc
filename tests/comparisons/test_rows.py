import pytest

from alim_keras.cli import train_flags
from alim_keras.comparisons.rows import Row
from alim_keras.comparisons.rows import parse_rows
from alim_keras.errors import ConfigError

FLAGS = train_flags.COMMAND.new_flags()


@pytest.mark.parametrize(
    "text, row",
    [
        ("rc", Row("rc")),
        ("rc+alim", Row("rc", alim=True)),
        ("pico+mixup+alim", Row("pico", alim=True, mixup=True)),
        ("pico+nomixup", Row("pico", mixup=False)),
        ("my.py:Own+alim", Row("my.py:Own", alim=True)),
        (
            "rc+alim[lam=0.3;--norm=scale]",
            Row("rc", True, None, (("lam", "0.3"), ("norm", "scale"))),
        ),
        # Commas and equals signs within brackets belong to the value.
        (
            "gce[method_options=q=0.5,weights=uniform]",
            Row(
                "gce",
                options=(("method_options", "q=0.5,weights=uniform"),),
            ),
        ),
    ],
)
def test_one_row(text, row):
    assert parse_rows(text, FLAGS) == [row]
    # A row's name reads back as the row.
    assert parse_rows(row.name, FLAGS) == [row]


def test_many_rows_keep_their_order():
    text = "rc, rc+alim[lam=0.3],pico+mixup+alim"
    names = [row.name for row in parse_rows(text, FLAGS)]
    assert names == ["rc", "rc+alim[lam=0.3]", "pico+alim+mixup"]


def test_the_base_of_a_row_has_no_flags_of_alim():
    (row,) = parse_rows("rc+alim+mixup[lam=0.3;width=8]", FLAGS)
    assert row.base().name == "rc+mixup[width=8]"


@pytest.mark.parametrize(
    "text, word",
    [
        ("rc,", "''"),
        ("+alim", "+alim"),
        ("rc+alm", "Did you mean +alim"),
        ("rc+alim+alim", "once"),
        ("rc+mixup+nomixup", "with mixup or without"),
        ("rc[width=8", "bracket"),
        ("rc[width=8]+alim", "rc[width=8]+alim"),
        ("rc[width]", "rc[width]"),
        ("rc[wdth=8]", "Did you mean --width"),
        ("rc[width=8;width=9]", "once"),
        ("rc[seed=3]", "--seed is not for one row"),
        ("rc[lam=0.3]", "rc+alim[...]"),
        ("rc+mixup[mixup_weight=0.5]", "Either +mixup"),
    ],
)
def test_what_is_no_row_is_refused(text, word):
    with pytest.raises(ConfigError) as caught:
        parse_rows(text, FLAGS)
    assert word in str(caught.value)
