"""The package as somebody installs, imports and starts it."""

import os
import subprocess
import sys
import tomllib
import venv
import zipfile

import pytest

import alim_keras
from alim_keras.__main__ import COMMANDS


def python(repository, *arguments, cwd=None, **variables):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(repository), **variables},
    )


PROGRAM = """
import sys
sys.argv = ["-m"]
sys.orig_argv = ["python", "-malim_keras.train"]
import alim_keras
heavy = {"keras", "tensorflow", "jax", "numpy", "pandas"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert set(alim_keras.__all__) <= set(dir(alim_keras))
import keras
model = keras.saving.load_model(sys.argv.pop() and MODEL)
assert type(model).__module__ == "alim_keras.methods.pico", type(model)
assert type(model) is alim_keras.PiCO
assert callable(alim_keras.audit)
"""


def test_import_is_light_and_saved_models_load(repository, tmp_path):
    path = str(tmp_path / "model.keras")
    backbone = alim_keras.networks.small_cnn((8, 8, 1), width=2)
    views = alim_keras.augment.Views((8, 8))
    sizes = {"queue_size": 4, "embedding_dim": 4}
    alim_keras.PiCO(backbone, 3, 4, views=views, **sizes).save(path)
    done = python(repository, "-c", PROGRAM.replace("MODEL", repr(path)))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    # The other order: Keras first.
    program = (
        "import keras, alim_keras\n"
        f"model = keras.saving.load_model({path!r})\n"
        "assert type(model) is alim_keras.PiCO"
    )
    done = python(repository, "-c", program)
    assert done.returncode == 0, done.stderr


def test_every_saved_class_is_named():
    import keras

    for name in alim_keras.__all__:
        getattr(alim_keras, name)
    with pytest.raises(AttributeError, match="nothing"):
        alim_keras.nothing
    registered = {
        name
        for name, value in keras.saving.get_custom_objects().items()
        if name.startswith("alim_keras>")
        and value.__module__.startswith("alim_keras.")
    }
    named = " ".join(alim_keras._SAVED.values()).split()
    assert registered == {f"alim_keras>{name}" for name in named}


LIGHT = """
import runpy, sys
try:
    runpy.run_module(sys.argv.pop(1), run_name="__main__")
finally:
    assert not {"keras", "tensorflow", "jax"} & set(sys.modules)
"""


@pytest.mark.parametrize(
    "words, code, out",
    [
        (["alim_keras.train", "--help"], 0, "python -m alim_keras.train"),
        (["alim_keras.train", "--version"], 0, alim_keras.__version__),
        (["alim_keras.train", "--print_config"], 0, "--epochs=80"),
        (["alim_keras.train", "--epoch=1"], 2, ""),
        (["alim_keras.audit"], 2, ""),
        (["alim_keras.check", "--train_size=90"], 0, "Sound"),
        (["alim_keras"], 0, "predict"),
        (["alim_keras", "audit", "--help"], 0, "python -m alim_keras.audit"),
        (["alim_keras", "trane"], 2, ""),
    ],
)
def test_what_runs_without_keras(repository, words, code, out, tmp_path):
    done = python(repository, "-c", LIGHT, *words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert out in done.stdout
    assert done.stderr.count("\n") == (code != 0)


def test_the_list_of_commands_is_whole(repository):
    package = repository / "alim_keras"
    assert all((package / f"{name}.py").is_file() for name in COMMANDS)
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))
    scripts = project["project"]["scripts"]
    assert scripts == {"alim-keras": "alim_keras.__main__:main"}


@pytest.mark.slow
def test_an_installed_package_works_in_any_folder(repository, tmp_path):
    pytest.importorskip("setuptools", minversion="77.0.3")
    wheels = tmp_path / "wheels"
    options = ("--no-deps", "--no-build-isolation", "-w", str(wheels))
    done = python(repository, "-m", "pip", "wheel", *options, str(repository))
    assert done.returncode == 0, done.stderr
    (wheel,) = wheels.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "alim_keras/flagfiles/cifar100.flags" in names
    assert any(n.startswith("alim_keras/report/templates/") for n in names)
    venv.create(tmp_path / "v", with_pip=True, system_site_packages=True)
    bin_folder = tmp_path / "v" / "bin"
    pip = [bin_folder / "python", "-m", "pip", "install", "--no-deps", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    places = [place for place in sys.path if "site-packages" in place]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    words = [bin_folder / "alim-keras", "train", "--dataset=cifar100"]
    out = subprocess.check_output(
        [*words, "--print_config"], text=True, cwd=tmp_path, env=environment
    )
    assert "--queue_size=8192" in out
