"""README and docs run as written."""

import ast
import builtins
import pathlib
import re
import runpy
import shlex

import commands
import keras
import numpy as np
import own
from absl import flags

import alim_keras
from alim_keras.__main__ import COMMANDS
from alim_keras.app import cli


def _blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def _program(page, part=""):
    """Returns the only program of a page that contains a part."""
    blocks = _blocks(page.read_text(encoding="utf-8"), "python")
    (program,) = [block for block in blocks if part in block]
    return program


def test_the_program_of_the_readme_runs(repository, tmp_path, monkeypatch):
    program = _program(repository / "README.md")
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
    program = _program(repository / "docs" / "own_labels.md")
    own.write_folder(tmp_path, count=260, tested=0)
    monkeypatch.chdir(tmp_path)
    inputs = keras.Input((8, 8, 1))
    backbone = keras.Model(inputs, keras.layers.Flatten()(inputs))
    names = {"model": alim_keras.PartialLabelModel(backbone, 10, 260)}
    exec(compile(program, "own_labels.md", "exec"), names)
    assert len(names["audit"].labels) == 260
    assert "report.html" in {one.name for one in tmp_path.rglob("*")}


def test_every_name_of_the_embedding_page_is_there(repository):
    page = (repository / "docs" / "embedding.md").read_text(encoding="utf-8")
    dotted = set(re.findall(r"\balim_keras(?:\.\w+)+", page))
    dotted |= {
        f"alim_keras.data.{name}"
        for name in re.findall(r"`((?:train|eval)_dataset|CandidateSets)", page)
    }
    assert len(dotted) > 8
    for name in dotted:
        found = alim_keras
        for part in name.split(".")[1:]:
            assert hasattr(found, part), name
            found = getattr(found, part)
    # What a block of code uses is imported, assigned or named in the text.
    given = (
        "images candidates vectors num_classes test_images labels model "
        "my_tf_data my_py_dataset alim_keras np tf"
    )
    known = {*given.split(), *vars(builtins)}
    for block in _blocks(page, "python"):
        tree = ast.parse(block)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                exec(ast.unparse(node), {})
                known |= {alias.name for alias in node.names}
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
        known |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
        assert {n.id for n in names} <= known, block


def test_the_feature_program_of_the_embedding_page_runs(repository):
    program = _program(repository / "docs" / "embedding.md", "mlp(")
    stream = np.random.default_rng(0)
    names = {"alim_keras": alim_keras, "num_classes": 3}
    names["vectors"] = stream.normal(size=(64, 5))
    names["candidates"] = np.eye(3)[stream.integers(0, 3, 64)]
    exec(compile(program, "embedding.md", "exec"), names)
    assert names["model"].predict(names["vectors"], verbose=0).shape == (64, 3)


def _commands(text):
    """Yields (command, words) of every command line in a page."""
    text = text.replace("\\\n", " ")
    for block in re.findall(r"```(?:sh)?\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            line = line.split("#")[0].split(" > ")[0]
            match = re.search(
                r"(?:scripts/(train)\b|alim_keras\.(\w+)|alim-keras (\w+))(.*)",
                line,
            )
            name = match and (match[1] or match[2] or match[3])
            if name in COMMANDS and not re.search(r"\.\.\.|\$", match[4]):
                yield name, shlex.split(match[4])


def test_every_command_in_the_documents_is_read(repository, monkeypatch):
    """Flags, values, presets and words; files need not be there."""
    usual = cli.read_flagfile

    def only_presets(file, *rest):
        # A page's own flagfile lies in a run folder.
        is_preset = pathlib.Path(file).is_relative_to(cli.preset_folder())
        return usual(file, *rest) if is_preset else []

    monkeypatch.setattr(cli, "read_flagfile", only_presets)
    seen = 0
    for page in [repository / "README.md", *repository.glob("docs/*.md")]:
        for name, words in _commands(page.read_text(encoding="utf-8")):
            try:
                commands.named(name)[0].parse(words)
            except alim_keras.errors.ConfigError as error:
                raise AssertionError(f"{page.name}: {words}: {error}") from None
            seen += 1
    assert seen > 30


def test_presets_and_links_of_the_documents_are_there(repository):
    for page in [*repository.glob("*.md"), *repository.glob("docs/*.md")]:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"--preset=([\w.]+)", text))
        if page.name != "CHANGELOG.md":
            assert named <= {*cli.preset_names(), "none", "NAME"}, page.name
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / target).exists(), (page.name, target)


def test_flags_are_not_defined_by_the_library():
    assert "run_dir" not in flags.FLAGS


def test_nothing_of_one_machine_is_in_the_repository(repository):
    pattern = re.compile(r"/(?:work|root|tmp/data)/")
    for folder in ("alim_keras", "docs", "flags", "scripts", "examples"):
        for path in (repository / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".flags", ".sh"):
                assert not pattern.search(path.read_text()), path
