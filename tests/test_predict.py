"""`python -m alim_keras.predict`: a model, images, and a CSV file."""

import csv
import io
import json
import os
import types

import keras
import numpy as np
import pytest
from PIL import Image

from alim_keras import cli
from alim_keras import predict
from alim_keras.cli import predict_flags
from alim_keras.data import tables
from alim_keras.data.sources.disk_images import DiskImages
from alim_keras.data.sources.image_files import decode
from alim_keras.methods import METHODS
from alim_keras.networks import mlp
from alim_keras.report import predictions
from alim_keras.runs.predictor import load_predictor

NAMES = ("ant", "bee", "cat, big", "döner")
SIZE, FEATURES, COUNT = 8, 5, 7


def _model(backbone, **options):
    model = METHODS["rc"](backbone, len(NAMES), 10, **options)
    # Far apart, so that no rounding decides who is the likeliest.
    stream = np.random.default_rng(1)
    shape = model.classifier.kernel.shape
    model.classifier.kernel.assign(stream.normal(size=shape))
    return model


def _leave(folder, model, shape):
    """Writes what a run leaves."""
    model.export(str(folder / "saved_model"), class_names=NAMES)
    model.save(folder / "model.keras")
    data = {"class_names": NAMES, "image_shape": shape}
    (folder / "run.json").write_text(json.dumps({"data": data}))


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The folder of a run on images, and its model."""
    keras.utils.set_random_seed(5)
    inputs = keras.Input((SIZE, SIZE, 1))
    x = keras.layers.Flatten()(inputs)
    backbone = keras.Model(inputs, keras.layers.Dense(6)(x))
    model = _model(backbone, mean=0.4, std=0.3)
    folder = tmp_path_factory.mktemp("run")
    _leave(folder, model, [SIZE, SIZE, 1])
    return types.SimpleNamespace(folder=folder, model=model)


@pytest.fixture(scope="session")
def tabular(tmp_path_factory):
    """The folder of a run on feature vectors, and its model."""
    keras.utils.set_random_seed(6)
    model = _model(mlp((1, 1, FEATURES), 6), mean=0.01, std=1 / 255)
    folder = tmp_path_factory.mktemp("tabular")
    _leave(folder, model, [1, 1, FEATURES])
    return types.SimpleNamespace(folder=folder, model=model)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """A folder of grey pictures at the network's size, and their pixels."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "more").mkdir()
    stream = np.random.default_rng(2)
    pixels = stream.integers(0, 256, (COUNT, SIZE, SIZE, 1)).astype("uint8")
    files = [f"{row}.png" for row in range(4)]
    files = [f"more/{row}.png" for row in range(4, COUNT)] + files
    # The listing gives files of a folder before its folders.
    files = files[COUNT - 4 :] + files[: COUNT - 4]
    for file, one in zip(files, pixels):
        Image.fromarray(one[..., 0]).save(folder / file)
    return types.SimpleNamespace(folder=folder, files=files, pixels=pixels)


def call(*arguments):
    words = [str(argument) for argument in arguments]
    return cli.run(predict_flags.COMMAND, predict.main, words)


@pytest.fixture
def rows(capsys):
    """Runs the command; returns the rows that it wrote to stdout."""

    def read(*arguments):
        capsys.readouterr()
        code = call(*arguments)
        found = capsys.readouterr()
        assert (code, found.err) == (0, "")
        return list(csv.DictReader(io.StringIO(found.out)))

    return read


@pytest.fixture
def error(capsys):
    """Runs the command; returns its exit code and its one line on stderr."""

    def read(*arguments):
        capsys.readouterr()
        code = call(*arguments)
        (line,) = capsys.readouterr().err.strip().splitlines()
        return code, line

    return read


def check(found, expected, top=3):
    """Compares rows with what `model.predict` gave."""
    assert len(found) == len(expected)
    for row, p in zip(found, expected):
        order = np.argsort(-p)[:top]
        for place, one in enumerate(order, start=1):
            suffix = "" if place == 1 else f"_{place}"
            assert row[f"label{suffix}"] == NAMES[one]
            share = float(row[f"probability{suffix}"])
            assert share == pytest.approx(p[one], abs=1e-5)
        assert f"label_{top + 1}" not in row


@pytest.mark.parametrize("model", ["", "saved_model", "model.keras"])
def test_each_form_of_model_gives_the_numbers_of_predict(
    run, pictures, rows, model
):
    found = rows(run.folder / model, pictures.folder, "--batch_size=3")
    assert [row["id"] for row in found] == [
        os.path.join(pictures.folder, file) for file in pictures.files
    ]
    check(found, run.model.predict(pictures.pixels, verbose=0))


def test_files_come_in_the_order_of_the_line(run, pictures, rows):
    chosen = [pictures.folder / pictures.files[row] for row in (5, 0)]
    found = rows(run.folder, *chosen, "--top_k=1")
    assert [row["id"] for row in found] == [str(file) for file in chosen]
    assert list(found[0]) == ["id", "label", "probability"]
    expected = run.model.predict(pictures.pixels[[5, 0]], verbose=0)
    check(found, expected, top=1)


def test_more_classes_than_there_are(run, pictures, rows):
    found = rows(run.folder, pictures.folder, "--top_k=9")
    check(found, run.model.predict(pictures.pixels, verbose=0), top=4)
    for row in found:
        shares = [row["probability"], *(row[f"probability_{k}"] for k in "234")]
        assert sum(map(float, shares)) == pytest.approx(1, abs=4e-6)


def test_colour_and_other_sizes_are_brought_to_the_model_s(
    run, pictures, rows, tmp_path
):
    colour = pictures.pixels[0].repeat(3, axis=2)
    Image.fromarray(colour).save(tmp_path / "a.png")
    large = pictures.pixels[1].repeat(2, axis=0).repeat(3, axis=1)
    Image.fromarray(large[..., 0]).save(tmp_path / "b.png")
    found = rows(run.folder, tmp_path)
    # Grey in colour is the same grey; a larger image is scaled and cropped as
    # for training.
    scaled = decode(str(tmp_path / "b.png"), SIZE, 1)
    expected = np.stack([pictures.pixels[0], scaled])
    check(found, run.model.predict(expected, verbose=0))


def test_arrays_and_files_come_in_the_order_of_the_line(
    run, pictures, rows, tmp_path
):
    np.save(tmp_path / "b.npy", pictures.pixels[2:4])
    first, last = (pictures.folder / pictures.files[row] for row in (0, 1))
    more = pictures.folder / "more"
    found = rows(run.folder, first, tmp_path / "b.npy", last, more)
    inside = [file for file in pictures.files if file.startswith("more/")]
    assert [row["id"] for row in found] == [
        str(first),
        "0",
        "1",
        str(last),
        *(os.path.join(pictures.folder, file) for file in inside),
    ]
    places = [0, 2, 3, 1, *map(pictures.files.index, inside)]
    expected = run.model.predict(pictures.pixels[places], verbose=0)
    check(found, expected)


def test_ids_of_arrays_are_text(run, pictures, rows, error, tmp_path):
    path = tmp_path / "a.npz"
    ids = np.array(["abc".encode(), "döner".encode(), b" 7 "])
    np.savez(path, images=pictures.pixels[:3], ids=ids)
    assert [row["id"] for row in rows(run.folder, path)] == [
        "abc",
        "döner",
        "7",
    ]
    np.savez(path, images=pictures.pixels[:3], ids=[3, 1, 2])
    assert [row["id"] for row in rows(run.folder, path)] == ["3", "1", "2"]
    for ids, words in (
        (["a", " ", "b"], "a.npz: the id of row 1 is blank"),
        (["a", "b", "a"], "a.npz: 1 ids come twice: a (rows 0 and 2)"),
        ([1.5, 2, 3], "'ids' must be a list of strings. Received: dtype=float"),
        (["a", "b"], "3 images, but 2 ids"),
    ):
        np.savez(path, images=pictures.pixels[:3], ids=ids)
        code, line = error(run.folder, path)
        assert code == 3
        assert words in line


def test_names_of_any_text_come_back_from_the_asset(run, tmp_path):
    names = ("a\u2028b", "c\x85d\x0be", "f\x0cg\x1ch\u2029i", " j")
    run.model.export(str(tmp_path / "served"), class_names=names)
    assert load_predictor(str(tmp_path / "served")).class_names == names


def test_arrays_of_images(run, pictures, rows, tmp_path):
    np.savez(tmp_path / "a.npz", images=pictures.pixels, ids=list("abcdefg"))
    np.save(tmp_path / "b.npy", pictures.pixels[:2, ..., 0])
    found = rows(run.folder, tmp_path / "a.npz", tmp_path / "b.npy")
    assert [row["id"] for row in found] == [*"abcdefg", "0", "1"]
    both = np.concatenate([pictures.pixels, pictures.pixels[:2]])
    check(found, run.model.predict(both, verbose=0))


def test_one_batch_is_read_at_a_time(run, pictures, rows, monkeypatch):
    read, sizes = DiskImages.read, []

    def noted(self, index):
        sizes.append(len(index))
        return read(self, index)

    monkeypatch.setattr(DiskImages, "read", noted)
    rows(run.folder, pictures.folder, "--batch_size=3")
    assert sizes == [3, 3, 1]


def test_out_is_written_whole(run, pictures, tmp_path, capsys):
    out = tmp_path / "new" / "out.csv"
    assert call(run.folder, pictures.folder, f"--out={out}") == 0
    assert "Wrote 7 predictions" in capsys.readouterr().out
    text = out.read_text(encoding="utf-8")
    found = list(csv.DictReader(io.StringIO(text)))
    check(found, run.model.predict(pictures.pixels, verbose=0))
    (tmp_path / "broken.png").write_bytes(b"none")
    code = call(run.folder, pictures.folder, tmp_path, f"--out={out}")
    assert code == 3
    assert out.read_text(encoding="utf-8") == text
    assert os.listdir(out.parent) == ["out.csv"]


def test_a_bad_image_is_named_or_skipped(
    run, pictures, error, tmp_path, capsys
):
    (tmp_path / "broken.png").write_bytes(b"none")
    (tmp_path / "empty.png").touch()
    arguments = (run.folder, pictures.folder, tmp_path)
    code, line = error(*arguments)
    assert code == 3
    assert f"{tmp_path / 'broken.png'}: cannot be read" in line
    assert "--on_bad_image=skip" in line
    assert call(*arguments, "--on_bad_image=skip") == 0
    output = capsys.readouterr()
    found = list(csv.DictReader(io.StringIO(output.out)))
    check(found, run.model.predict(pictures.pixels, verbose=0))
    assert "warning: 2 images could not be read" in output.err
    assert "empty.png" in output.err
    code, line = error(run.folder, tmp_path, "--on_bad_image=skip")
    assert code == 3
    assert "2 images, and none of them can be read" in line


def test_ranked_rows_by_hand():
    p = np.array([[0.5, 0.1, 0.3, 0.1], [0.0, 1.0, 0.0, 0.0]])
    s = np.array([[False, True, True, False], [True, False, False, True]])
    first, second = predictions.ranked_rows(["x", "y"], p, s, NAMES)
    # 0.3 and 0.1 of 0.4; 0.6 outside, and the likeliest, ant, is there.
    assert first == [
        "x",
        '["cat, big", "bee"]',
        "[0.75, 0.25]",
        "0.600000",
        "1",
        "ant",
        "0.500000",
    ]
    # Nothing inside: all alike, in the order of the classes.
    assert second[1:5] == ['["ant", "döner"]', "[0.5, 0.5]", "1.000000", "1"]
    full = np.ones((1, 4), bool)
    (third,) = predictions.ranked_rows(["z"], p[:1], full, NAMES)
    assert json.loads(third[2]) == [0.5, 0.3, 0.1, 0.1]
    assert third[3:5] == ["0.000000", "0"]


@pytest.fixture
def table(tmp_path):
    """Pairs of candidates of five of the pictures, out of order."""
    order = [4, 0, 6, 2, 1]
    lines = [f"{row},bee|döner" for row in order]
    path = tmp_path / "sets.csv"
    path.write_text("\n".join(["id,candidates", *lines]), encoding="utf-8")
    return types.SimpleNamespace(path=path, order=order)


def test_rank_of_a_table(run, pictures, table, rows, tmp_path, capsys):
    arguments = (
        run.folder,
        f"--candidates_file={table.path}",
        f"--images={pictures.folder}",
    )
    found = rows(*arguments, "--rank", "--batch_size=2")
    p = run.model.predict(pictures.pixels[table.order], verbose=0)
    assert [row["id"] for row in found] == [str(row) for row in table.order]
    for row, p_row in zip(found, p):
        inside = p_row[[1, 3]]
        order = [1, 3] if inside[0] >= inside[1] else [3, 1]
        assert json.loads(row["candidates"]) == [NAMES[c] for c in order]
        assert json.loads(row["probabilities"]) == pytest.approx(
            p_row[order] / inside.sum(), abs=1e-5
        )
        assert float(row["outside_probability"]) == pytest.approx(
            1 - inside.sum(), abs=1e-5
        )
        assert row["label"] == NAMES[p_row.argmax()]
        assert row["outside"] == str(int(p_row.argmax() not in (1, 3)))
    outside = sum(row["outside"] == "1" for row in found)
    assert 0 < outside < 5
    call(*arguments, "--rank", f"--out={tmp_path / 'o.csv'}")
    said = capsys.readouterr().out
    assert f"The likeliest class is outside the set of {outside}" in said
    # Without --rank the items of the table are predicted as any.
    check(rows(*arguments), p)


def test_a_table_that_holds_its_images(run, pictures, rows, tmp_path):
    path = tmp_path / "t.npz"
    sets = np.eye(4, dtype=bool)[[1, 3]]
    np.savez(path, candidates=sets, images=pictures.pixels[:2], ids=["u", "v"])
    found = rows(run.folder, f"--candidates_file={path}")
    assert [row["id"] for row in found] == ["u", "v"]
    check(found, run.model.predict(pictures.pixels[:2], verbose=0))


def test_a_ranked_file_is_a_table_again(run, pictures, table, tmp_path):
    out = tmp_path / "ranked.csv"
    code = call(
        run.folder,
        "--rank",
        f"--candidates_file={table.path}",
        f"--images={pictures.folder}",
        f"--out={out}",
    )
    assert code == 0
    again = tables.read_labels(out, class_names=NAMES)
    assert again.ids.tolist() == [str(row) for row in table.order]
    expected = [[False, True, False, True]] * 5
    assert again.candidates.sets.tolist() == expected


def test_images_are_found_beside_the_table(run, pictures, table, rows):
    beside = table.path.parent
    for row in table.order:
        source = pictures.folder / pictures.files[row]
        (beside / f"{row}.png").write_bytes(source.read_bytes())
    found = rows(run.folder, f"--candidates_file={table.path}")
    p = run.model.predict(pictures.pixels[table.order], verbose=0)
    check(found, p)


def test_a_table_s_missing_images(run, pictures, table, error, capsys):
    with table.path.open("a", encoding="utf-8") as file:
        file.write("\n99,ant|bee")
    arguments = (
        run.folder,
        f"--candidates_file={table.path}",
        f"--images={pictures.folder}",
    )
    code, line = error(*arguments)
    assert code == 3
    assert "1 of 6 ids" in line
    assert "99" in line
    assert call(*arguments, "--on_bad_image=skip") == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 6
    assert "warning: 1 images could not be read" in output.err


def test_a_table_of_unknown_classes(run, pictures, table, error):
    text = table.path.read_text(encoding="utf-8").replace("bee", "bea")
    table.path.write_text(text, encoding="utf-8")
    code, line = error(
        run.folder,
        f"--candidates_file={table.path}",
        f"--images={pictures.folder}",
    )
    assert code == 3
    assert "bea" in line
    assert "bee" in line


def test_tables_of_features(tabular, rows, tmp_path):
    values = np.random.default_rng(3).normal(2.55, 1, (COUNT, FEATURES))
    values = values.astype("float32")
    names = [f"f{column}" for column in range(FEATURES)]
    lines = [
        ",".join([f"00{row}", "some words", *map(repr, map(float, value))])
        for row, value in enumerate(values)
    ]
    text = "\n".join([",".join(["id", "remark", *names]), *lines])
    (tmp_path / "a.csv").write_text(text)
    np.savez(tmp_path / "b.npz", features=values)
    np.save(tmp_path / "c.npy", values.reshape(COUNT, 1, 1, FEATURES))
    expected = tabular.model.predict(values, verbose=0)
    for name, ids in (("a.csv", "00{}"), ("b.npz", "{}"), ("c.npy", "{}")):
        model = "model.keras" if name == "a.csv" else "saved_model"
        path = tmp_path / name
        found = rows(tabular.folder / model, path, "--batch_size=3")
        assert [row["id"] for row in found] == [
            ids.format(row) for row in range(COUNT)
        ]
        check(found, expected)


def test_ids_of_a_table_are_its_text(tabular, rows, tmp_path):
    ids = ["NA", "null", "nan", "007", "1.0", "a, b", "döner"]
    lines = [f'"{one}",1,2,3,4,{row}' for row, one in enumerate(ids)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["id,a,b,c,d,e", *lines]), encoding="utf-8")
    for size in (2, 64):
        found = rows(tabular.folder, path, f"--batch_size={size}")
        assert [row["id"] for row in found] == ids


@pytest.mark.parametrize("size", [2, 64])
@pytest.mark.parametrize(
    "ids, words",
    [
        (["a", "b", "", "c"], "1 ids are blank or no text, in rows 2 ("),
        (["a", " ", "c", "d"], "1 ids are blank or no text, in rows 1 ("),
        (["a", "b", "c", "a"], "1 ids come twice: a (rows 0 and 3)"),
        (["NA", "b", "NA", "c"], "1 ids come twice: NA (rows 0 and 2)"),
    ],
)
def test_ids_that_name_no_row(tabular, error, tmp_path, ids, words, size):
    lines = ["id,a,b,c,d,e", *(f"{one},1,2,3,4,5" for one in ids)]
    (tmp_path / "a.csv").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "out.csv"
    code, line = error(
        tabular.folder,
        tmp_path / "a.csv",
        f"--batch_size={size}",
        f"--out={out}",
    )
    assert code == 3
    assert f"a.csv: {words}" in line
    assert not out.exists()


@pytest.mark.parametrize(
    "text, words",
    [
        ("id,a,b\nx,1,2\n", "takes 5 features, and there are 2 columns"),
        ("a,b,c,d,e\n1,2,3,4,5\n1,2,,4,5\n", "NaN or infinite values, ids 1"),
        ("", "cannot be read as a table"),
        ("a,b,c,d,e\n", "nothing to predict"),
    ],
)
def test_bad_tables_of_features(tabular, error, tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text)
    code, line = error(tabular.folder, tmp_path / "a.csv")
    assert code == 3
    assert words in line


def test_what_the_model_does_not_take(run, tabular, pictures, error, tmp_path):
    code, line = error(tabular.folder, pictures.folder)
    assert (code, "takes vectors of 5 features" in line) == (3, True)
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 8, 8, 3), "uint8"))
    code, line = error(run.folder, tmp_path / "a.npz")
    assert code == 3
    assert "the model takes 1 channels. Received: 3 channels" in line
    code, line = error(tabular.folder, tmp_path / "a.npz")
    assert (code, "no array 'features'" in line) == (3, True)
    np.save(tmp_path / "b.npy", np.zeros((2, 4)))
    code, line = error(tabular.folder, tmp_path / "b.npy")
    assert (code, "takes 5 features. Received: 4" in line) == (3, True)
    (tmp_path / "c.csv").write_text("id,candidates\n")
    code, line = error(run.folder, tmp_path / "c.csv")
    assert (code, "--candidates_file" in line) == (3, True)


def test_no_model_and_no_images_are_named(
    run, pictures, error, tmp_path, monkeypatch
):
    picture = pictures.folder / pictures.files[0]
    code, line = error(tmp_path / "none", picture)
    assert (code, "There is no model at" in line) == (5, True)
    code, line = error(pictures.folder, picture)
    assert (code, "neither saved_model nor model.keras" in line) == (5, True)
    code, line = error(picture, picture)
    assert (code, "is no model" in line) == (5, True)
    (tmp_path / "model.keras").write_bytes(b"none")
    code, line = error(tmp_path / "model.keras", picture)
    assert (code, "cannot be loaded" in line) == (5, True)
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "saved_model.pb").write_bytes(b"none")
    code, line = error(tmp_path / "graph", picture)
    assert (code, "cannot be read" in line) == (5, True)
    code, line = error(run.folder, tmp_path / "graph")
    assert (code, "no images in this folder" in line) == (3, True)
    code, line = error(run.folder, picture, tmp_path / "x.png")
    assert (code, "1 of 2 files or folders do not exist" in line) == (3, True)


def test_flags_that_do_not_fit(run, pictures, error):
    code, line = error(run.folder)
    assert (code, "Received: neither" in line) == (2, True)
    code, line = error(run.folder, pictures.folder, "--candidates_file=a.csv")
    assert (code, "either images to predict, or" in line) == (2, True)
    code, line = error(run.folder, pictures.folder, "--rank")
    assert (code, "--rank puts candidate sets" in line) == (2, True)
    code, line = error()
    assert (code, "Expected MODEL [PATHS...]" in line) == (2, True)
    code, line = error(run.folder, pictures.folder, "--class_names=a,b")
    assert (code, "has 4 classes" in line) == (2, True)


def test_class_names_of_one_s_own(run, pictures, rows):
    found = rows(run.folder, pictures.folder, "--class_names=w,x,y,z")
    p = run.model.predict(pictures.pixels, verbose=0)
    assert [row["label"] for row in found] == ["wxyz"[c] for c in p.argmax(1)]


def test_a_reader_that_stops_early_is_no_error(run, pictures, monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        assert call(run.folder, pictures.folder) == 0


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_for_terminals(monkeypatch, is_terminal):
    shown = io.StringIO()
    shown.isatty = lambda: is_terminal
    monkeypatch.setattr("sys.stderr", shown)
    times = iter([0.0, 0.1, 2.0])
    monkeypatch.setattr(predict.time, "monotonic", lambda: next(times))
    progress = predict.Progress(1000, to_file=True)
    progress.show(10)
    progress.show(1000)
    progress.end()
    line = "1,000 of 1,000 predicted, 500 a second"
    blank = "\r" + " " * len(line) + "\r"
    assert shown.getvalue() == (f"\r{line}{blank}" if is_terminal else "")
