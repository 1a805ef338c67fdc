"""`python -m alim_keras.predict`: a model, images, and a CSV file."""

import csv
import io
import os

import numpy as np
import pytest
from PIL import Image
from predicting import SIZE
from predicting import call
from predicting import check

from alim_keras import predict
from alim_keras.data.sources.disk_images import DiskImages
from alim_keras.data.sources.image_files import decode
from alim_keras.runs.predictor import load_predictor


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
