import pytest

from alim_keras.data.known_labels import read_annotations
from alim_keras.data.known_labels import read_test_labels
from alim_keras.data.tables import read_labels
from alim_keras.errors import DataError

IDS = ["a1", "a2", "a3"]
NAMES = ["cat", "dog"]


def read(tmp_path, text):
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return read_annotations(path, IDS, NAMES)


def test_reads_names_and_numbers(tmp_path):
    rows, labels = read(
        tmp_path, "\ufefflabel,who,id\ndog,me,a3\n 0 ,you, a1\n"
    )
    assert rows.tolist() == [2, 0] and labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    "text, words",
    [
        ("id,label\na1,cat\nb7,dog\n", ["1 ids", "'b7' (line 3)", "a1"]),
        ("id,label\na1,cat\na1,dog\n", ["twice", "'a1' (lines 2 and 3)"]),
        (
            "id,label\na1,dgo\na2,2\n",
            ["2 labels", "'dgo' (line 2)", "'2' (line 3)", "mean dog"],
        ),
        ("id,class\na1,cat\n", ["columns id and label", "id, class"]),
        ("", ["columns id and label", "nothing"]),
        ("id,label\n", ["holds no label"]),
        ("id,label\na1\n", ["'' (line 2)"]),
        ("id,label\na1,cat, big\n", ["line 2 has 3 cells", "first line 2"]),
        ("id,label\na1,-1\na2,0.5\n", ["2 labels", "'-1'", "'0.5' (line 3)"]),
    ],
)
def test_an_unsound_file_is_named_by_line(text, words, tmp_path):
    with pytest.raises(DataError) as error:
        read(tmp_path, text)
    message = str(error.value)
    assert "labels.csv" in message and "\n" not in message
    for word in words:
        assert word in message


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="nowhere.csv"):
        read_annotations(tmp_path / "nowhere.csv", IDS, NAMES)


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(b"id,label\n\xff\xfe,cat\n")
    with pytest.raises(DataError, match="UTF-8"):
        read_annotations(path, IDS, NAMES)


def test_labels_of_items_of_any_name(tmp_path):
    path = tmp_path / "test.csv"
    path.write_text("id,label\nz/1.png,dog\nz/2.png,0\n", encoding="utf-8")
    ids, labels = read_test_labels(path, NAMES)
    assert ids.tolist() == ["z/1.png", "z/2.png"] and labels.tolist() == [1, 0]
    path.write_text("id,label\n,dog\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 ids are empty: '' .line 2.;"):
        read_test_labels(path, NAMES)


def test_semicolons_of_a_spreadsheet(tmp_path):
    rows, labels = read(tmp_path, "\ufeffid;label\r\na2;dog\r\na1;cat\r\n")
    assert rows.tolist() == [1, 0] and labels.tolist() == [1, 0]


def test_a_header_is_split_where_id_and_label_come_out(tmp_path):
    text = 'id;label;"a,b",c\na2;dog;1,5\n'
    rows, labels = read(tmp_path, text)
    assert rows.tolist() == [1] and labels.tolist() == [1]
    text = "note, or so\tlabel\tid\nx\tdog\ta3\n"
    rows, labels = read(tmp_path, text)
    assert rows.tolist() == [2] and labels.tolist() == [1]
    # Two ways to read it, and two answers.
    with pytest.raises(DataError, match="split at a comma or a semicolon"):
        read(tmp_path, "id;label;x,id,label\na1;cat;3,a1,dog\n")
    # A comma at the end of every line is nothing.
    rows, labels = read(tmp_path, "id,label\na1,dog,\n")
    assert rows.tolist() == [0] and labels.tolist() == [1]


@pytest.mark.parametrize(
    "names, cells, expected",
    [
        (["cat", "dog"], ["1", "0", "1.0"], [1, 0, 1]),
        (["1", "2", "3"], ["1", "3", "2.0"], [0, 2, 1]),
        (["10", "1", "0"], ["1", "0", "10"], [1, 2, 0]),
        (["1", "2", "3"], ["0"], None),
        (["10", "20", "30"], ["1"], None),
        (["1", "two"], ["0"], None),
    ],
)
def test_numbers_mean_what_they_mean_in_a_table(
    tmp_path, names, cells, expected
):
    ids = IDS[: len(cells)]
    pairs = [f"{one},{cell}\n" for one, cell in zip(ids, cells)]
    known, table = tmp_path / "labels.csv", tmp_path / "table.csv"
    known.write_text("id,label\n" + "".join(pairs), encoding="utf-8")
    table.write_text("id,candidates\n" + "".join(pairs), encoding="utf-8")
    if expected is None:
        for read_file in (
            lambda: read_annotations(known, ids, names),
            lambda: read_labels(table, class_names=names),
        ):
            with pytest.raises(DataError):
                read_file()
        with pytest.raises(DataError) as error:
            read_annotations(known, ids, names)
        assert f"expected one of {', '.join(names)}" in str(error.value)
        assert "a number from 0" not in str(error.value)
        return
    assert read_annotations(known, ids, names)[1].tolist() == expected
    sets = read_labels(table, class_names=names).candidates.sets
    assert sets.argmax(1).tolist() == expected and sets.sum() == len(ids)


def test_a_quotation_mark_that_never_ends(tmp_path):
    text = 'id,label\na1,cat\na2,"' + "x" * 140_000
    with pytest.raises(DataError, match="labels.csv: line .* no sound CSV"):
        read(tmp_path, text)


def test_what_a_network_settled_on_is_no_true_label(tmp_path):
    with pytest.raises(DataError, match="labels.csv: is an audit's"):
        read(tmp_path, "id,label,suspicion\na1,cat,0.1\n")


def test_no_file_of_test_labels_is_no_item():
    ids, labels = read_test_labels(None, NAMES)
    assert len(ids) == len(labels) == 0


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_called_so(tmp_path, coding):
    path = tmp_path / "labels.csv"
    path.write_bytes("id,label\na1,cat\n".encode(coding))
    with pytest.raises(DataError, match="is UTF-16.*save it as UTF-8"):
        read_annotations(path, IDS, NAMES)


def test_codes_are_no_places(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,label\na1,02\n", encoding="utf-8")
    assert read_annotations(path, IDS, ["01", "02"])[1].tolist() == [1]
    path.write_text("id,label\na1,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 labels are no class: '1'.*mean 01"):
        read_annotations(path, IDS, ["01", "02"])
