"""What is written as a list of JSON lists is read again as it was."""

import csv
import io
import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from alim_keras.data import CandidateSets
from alim_keras.data.tables import read_labels
from alim_keras.errors import DataError


def export(candidates, delimiter=",", lineterminator="\r\n"):
    """Returns candidate sets as the text of a list table."""
    file = io.StringIO(newline="")
    # Ending lines with "\n", the csv module of Python 3.11 leaves "\r" bare.
    quoting = csv.QUOTE_MINIMAL if lineterminator == "\r\n" else csv.QUOTE_ALL
    writer = csv.writer(
        file,
        delimiter=delimiter,
        lineterminator=lineterminator,
        quoting=quoting,
    )
    writer.writerow(["id", "candidates"])
    names = candidates.class_names
    for one, row in zip(candidates.ids, candidates.sets, strict=True):
        chosen = [names[index] for index in np.flatnonzero(row)]
        writer.writerow([one, json.dumps(chosen, ensure_ascii=False)])
    return file.getvalue()


ODD = (
    "plain",
    "T-shirt/top",
    "rock, paper",
    'say "no"',
    "two\u2028lines",
    "two\x85more\x0b\x0c\x1clines",
    "a|b;c",
    "gr\u00fc\u00df \u732b \U0001f431",
    "[x]",
    "7",
    "1.5",
    "true",
    "none",
    "#x",
    "\\",
)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_odd_names_come_back(write, name):
    rng = np.random.default_rng(0)
    sets = rng.random((40, len(ODD))) < 0.3
    sets[np.arange(40), np.arange(40) % len(ODD)] = True
    ids = [f"{index}{ODD[index % len(ODD)]}\nb" for index in range(40)]
    before = CandidateSets(ids, sets, ODD)
    delimiter = "\t" if name.endswith("tsv") else ","
    after = read_labels(write(export(before, delimiter), name), class_names=ODD)
    assert after.ids.tolist() == ids
    np.testing.assert_array_equal(after.candidates.sets, sets)
    assert after.candidates.class_names == ODD
    assert after.candidates.content_hash == before.content_hash
    again = read_labels(write(export(after.candidates)), class_names=ODD)
    assert again.candidates.content_hash == before.content_hash


def test_found_names_come_back_too(write):
    names = ("T-shirt/top", "a,b", "gr\u00fc\u00df", "x|y")
    before = CandidateSets(["2", "1"], [[1, 0, 1, 1], [0, 1, 0, 1]], names)
    after = read_labels(write(export(before))).candidates
    assert after.class_names == names
    assert after.content_hash == before.content_hash
    assert after.ids.tolist() == ["2", "1"]


def test_a_name_that_is_itself_a_list(write):
    names = ["a", '["a"]']
    path = write(export(CandidateSets(["x"], [[True, False]], names)))
    with pytest.raises(DataError, match="two ways"):
        read_labels(path, class_names=names)
    path = write(export(CandidateSets(["x"], [[False, True]], names)))
    found = read_labels(path, class_names=names)
    assert found.candidates.sets.tolist() == [[False, True]]


def sound(text):
    return text == text.strip() != "" and "\0" not in text


TEXT = st.text(
    st.one_of(
        st.sampled_from('ab01,;|"[]\n\r\t #\\-'),
        st.characters(exclude_categories=["Cs"]),
    ),
    min_size=1,
    max_size=6,
).filter(sound)


@st.composite
def candidate_sets(draw):
    # A class is a line of class_names.txt.
    one_line = TEXT.filter(lambda text: not {"\n", "\r"} & set(text))
    names = draw(st.lists(one_line, min_size=2, max_size=5, unique=True))
    ids = draw(st.lists(TEXT, min_size=1, max_size=6, unique=True))
    rows = [
        draw(st.sets(st.integers(0, len(names) - 1), min_size=1)) for _ in ids
    ]
    sets = np.zeros((len(ids), len(names)), bool)
    for row, chosen in enumerate(rows):
        sets[row, list(chosen)] = True
    return CandidateSets(ids, sets, names)


@hypothesis.settings(
    max_examples=150,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(candidate_sets(), st.sampled_from(["\n", "\r\n"]))
@pytest.mark.filterwarnings("ignore::alim_keras.data.DataWarning")
def test_export_and_import_are_the_identity(write, before, lineterminator):
    path = write(export(before, lineterminator=lineterminator))
    after = read_labels(path, class_names=before.class_names)
    assert after.ids.tolist() == before.ids.tolist()
    np.testing.assert_array_equal(after.candidates.sets, before.sets)
    assert after.candidates.class_names == before.class_names
    assert after.candidates.content_hash == before.content_hash
