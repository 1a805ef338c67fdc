"""What README and docs show must run as written."""

import pathlib
import re
import runpy

import keras
import numpy as np
import own
from absl import flags

import alim_keras
from alim_keras.cli import flagfiles
from alim_keras.cli import train_flags


def _blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_program_of_the_readme_runs(repository, tmp_path, monkeypatch):
    (program,) = _blocks((repository / "README.md").read_text(), "python")
    # The same program on a network and for a time that a test can afford.
    for shown, small in (
        ("cifar_resnet18()", "small_cnn((32, 32, 3), width=2)"),
        ("epochs=1000", "epochs=1"),
        ("batch_size=128", "batch_size=8"),
    ):
        assert shown in program
        program = program.replace(shown, small)
    monkeypatch.chdir(tmp_path)
    stream = np.random.default_rng(0)
    images = stream.integers(0, 256, (16, 32, 32, 3)).astype("uint8")
    names = {
        "images": images,
        "candidates": np.eye(10)[stream.integers(0, 10, 16)],
        "test_images": images[:4],
        "test_labels": np.arange(4),
    }
    exec(compile(program, "README.md", "exec"), names)
    assert names["model"].pseudo_labels.shape == (16, 10)
    assert (tmp_path / "saved_model" / "saved_model.pb").exists()


def test_the_example_learns(repository, capsys):
    example = runpy.run_path(str(repository / "examples" / "embed.py"))
    accuracy = example["main"](epochs=12)
    assert accuracy > 0.8
    assert "same predictions: True" in capsys.readouterr().out


def test_the_program_about_own_labels_runs(repository, tmp_path, monkeypatch):
    page = repository / "docs" / "own_labels.md"
    (program,) = _blocks(page.read_text(), "python")
    own.write_folder(tmp_path, count=260, tested=0)
    monkeypatch.chdir(tmp_path)
    inputs = keras.Input((8, 8, 1))
    backbone = keras.Model(inputs, keras.layers.Flatten()(inputs))
    names = {"model": alim_keras.PartialLabelModel(backbone, 10, 260)}
    exec(compile(program, "own_labels.md", "exec"), names)
    assert len(names["audit"].labels) == 260
    assert "report.html" in {one.name for one in tmp_path.rglob("*")}


def test_every_flag_in_the_documents_exists(repository):
    known = set(train_flags.COMMAND.new_flags()) | {"checkpoint", "help"}
    # Flags of pytest, pip and the scripts stand in other commands.
    command = re.compile(r"(?:scripts/train|alim_keras\.train)\b([^\n|`]*)")
    pages = [repository / "README.md", *(repository / "docs").glob("*.md")]
    seen = 0
    for page in pages:
        text = page.read_text().replace("\\\n", " ")
        for line in command.findall(text):
            for name in re.findall(r"--(?:no)?([a-z_]+)", line):
                seen += 1
                whole = re.search(rf"--(no{name})\b", line)
                assert name in known or (whole and whole[1] in known), (
                    page.name,
                    name,
                )
    assert seen > 10


def test_every_preset_in_the_documents_exists(repository):
    known = flagfiles.preset_names()
    pages = [repository / "README.md", *(repository / "docs").glob("*.md")]
    named = set()
    for page in pages:
        named |= set(re.findall(r"--preset=([\w.]+)", page.read_text()))
    assert named and named <= {*known, "none", "NAME"}


def test_links_between_documents_lead_somewhere(repository):
    pages = [*repository.glob("*.md"), *(repository / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)


def test_flags_are_not_defined_by_the_library():
    import alim_keras  # noqa: F401

    assert "run_dir" not in flags.FLAGS


def test_nothing_of_one_machine_is_in_the_repository(repository):
    pattern = re.compile(r"/(?:work|root|tmp/data)/")
    for folder in ("alim_keras", "docs", "flags", "scripts", "examples"):
        for path in pathlib.Path(repository / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".flags", ".sh"):
                assert not pattern.search(path.read_text()), path
