"""scripts/train and scripts/test on a small checkout of their own."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent

TRAIN = """\
import os, sys
print(os.getcwd())
print(sys.argv[1:])
print(sys.path[0])
sys.exit(int(os.environ.get("CODE", "0")))
"""
PYPROJECT = """\
[project.optional-dependencies]
test = ["pip"]
"""


def make_checkout(folder):
    """A checkout whose one requirement every new environment has already."""
    shutil.copytree(REPOSITORY / "scripts", folder / "scripts")
    (folder / "alim_keras").mkdir()
    (folder / "alim_keras" / "__init__.py").touch()
    (folder / "alim_keras" / "train.py").write_text(TRAIN)
    (folder / "requirements.txt").write_text("# Needs:\n\npip\n")
    (folder / "pyproject.toml").write_text(PYPROJECT)
    return folder


def call(checkout, script, *arguments, cwd, **variables):
    # A PATH whose python3 is that of the one that runs the tests.
    folder = pathlib.Path(sys.base_prefix) / "bin"
    usual = os.environ.items()
    environment = {k: v for k, v in usual if not k.startswith("PYTHON")}
    environment["PATH"] = f"{folder}:/usr/bin:/bin"
    done = subprocess.run(
        [checkout / "scripts" / script, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**environment, **variables},
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A checkout with a blank in its path, and its environment."""
    checkout = make_checkout(tmp_path_factory.mktemp("a b") / "check out")
    code, _, err = call(checkout, "train", cwd=checkout)
    assert code == 0, err
    assert "Making the environment" in err
    return checkout


def test_from_any_folder_with_the_callers_paths(ready, tmp_path):
    # A file that would hide the package if this folder were on the path.
    (tmp_path / "alim_keras.py").write_text("raise SystemExit(99)\n")
    words = ["--run_dir=my runs/x", "*", ""]
    code, out, err = call(ready, "train", *words, cwd=tmp_path)
    assert code == 0
    # The second time nothing is made or installed.
    assert err == ""
    assert out.splitlines() == [str(tmp_path), str(words), str(ready)]
    # With its PYTHONPATH, and through a symbolic link.
    (tmp_path / "sitecustomize.py").write_text("print('custom')\n")
    (tmp_path / "scripts").symlink_to(ready / "scripts")
    code, out, _ = call(tmp_path, "train", cwd="/", PYTHONPATH=str(tmp_path))
    assert code == 0 and "custom" in out.splitlines()


def test_new_requirements_are_installed_once(ready):
    requirements = ready / "requirements.txt"
    requirements.write_text("pip>=1\n")
    code, _, err = call(ready, "train", cwd="/")
    assert code == 0 and "Requirement already satisfied: pip>=1" in err
    # A comment is no requirement.
    requirements.write_text("# Why.\npip>=1\n")
    assert call(ready, "train", cwd="/")[2] == ""
    requirements.write_text("./there-is-no-such-folder\n")
    code, out, err = call(ready, "train", cwd="/")
    assert code == 6 and out == ""
    last = err.splitlines()[-1]
    assert last.startswith("alim_keras set-up: error: pip install failed")
    # It was not taken for installed, and the environment is still good.
    requirements.write_text("pip>=1\n")
    assert call(ready, "train", cwd="/")[0] == 0


def test_the_test_script_installs_its_extra_too(ready):
    # An exit code passes through.
    assert call(ready, "train", cwd="/", CODE="130")[0] == 130
    code, _, err = call(ready, "test", cwd="/")
    # The small environment has no pytest: the script came as far as calling.
    assert code == 1 and "No module named pytest" in err
    # What the extra brings is enough for training.
    assert call(ready, "train", cwd="/")[2] == ""


def test_no_python_is_one_line_and_six(tmp_path):
    checkout = make_checkout(tmp_path / "checkout")
    folder = tmp_path / "few"
    folder.mkdir()
    for name in ("bash", "dirname", "readlink", "env"):
        (folder / name).symlink_to(shutil.which(name))
    # A command of the right name that cannot run.
    (folder / "python3").write_text("#!/bin/bash\nexit 127\n")
    (folder / "python3").chmod(0o755)
    code, out, err = call(checkout, "train", cwd="/", PATH=str(folder))
    assert (code, out) == (6, "")
    assert err.count("\n") == 1
    assert "found no Python 3.11 to 3.13" in err
    assert not (checkout / ".venv").exists()


def test_a_half_made_environment_is_made_anew(tmp_path):
    checkout = make_checkout(tmp_path / "checkout")
    (checkout / ".venv" / "bin").mkdir(parents=True)
    code, _, err = call(checkout, "train", cwd="/")
    assert code == 0, err
    assert call(checkout, "train", cwd="/")[2] == ""
