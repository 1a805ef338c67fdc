"""The package's own rules: imports point downwards, and small things."""

import ast
import pathlib
import re

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "alim_keras"

# A module may import its own layer and those above it in this list.
LAYERS = (
    ("errors", "draws", "files"),
    ("ops", "backend"),
    ("losses", "metrics"),
    ("layers", "networks", "augment"),
    ("methods",),
    ("callbacks", "data", "noise_rate"),
    ("report",),
    ("runs",),
    ("benchmarks",),
    ("cli", "train", "export", "check", "audit", "benchmark"),
    ("comparisons",),
    ("compare", "predict"),
)
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}
COMMANDS = ("train", "export", "check", "audit", "benchmark", "compare")
COMMANDS = (*COMMANDS, "predict")
# Modules of one framework; backend.tensorflow_timing belongs to the first's.
FRAMEWORKS = {
    "tensorflow": (
        "backend.tensorflow",
        "backend.serving",
        "data.pipeline",
        "data.sources",
        *COMMANDS,
    ),
    "jax": ("backend.jax",),
}
FRAMEWORKS["tensorflow_datasets"] = FRAMEWORKS["tensorflow"]
FLAGS_ALLOWED = ("cli", *COMMANDS)
LONGEST_FILE = 500


def imported_names(tree, package):
    """Yields the dotted name of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            parts = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join((*parts, *filter(None, [node.module])))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def within(module, names):
    return any(module == n or module.startswith(f"{n}.") for n in names)


def violations(module, source, is_package=False):
    """Returns what a module of alim_keras breaks, as a list of sentences.

    `module` is its dotted name below alim_keras, "" for alim_keras itself.
    """
    tree = ast.parse(source)
    top = module.split(".")[0]
    found = []
    if len(source.splitlines()) > LONGEST_FILE:
        found.append(f"longer than {LONGEST_FILE} lines")
    if any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        found.append("has an assert statement")
    if top and top not in RANKS:
        found.append(f"{top} stands in no layer: add it to LAYERS")
    full = f"alim_keras.{module}" if module else "alim_keras"
    package = full if is_package else full.rpartition(".")[0]
    for name in imported_names(tree, package):
        root, _, rest = name.partition(".")
        if root in FRAMEWORKS and not within(
            re.sub(r"^(backend\.[a-z]+)_", r"\1.", module), FRAMEWORKS[root]
        ):
            found.append(f"imports {root}")
        if within(name, ["absl.flags"]) and not within(module, FLAGS_ALLOWED):
            found.append("imports absl.flags")
        if root == "alim_keras" and top:
            # Names that the package itself defines stand below the commands.
            other = rest.split(".")[0]
            rank = RANKS.get(other, RANKS["report"])
            if rank > RANKS.get(top, len(LAYERS)) and rest != "__version__":
                found.append(f"imports upwards: {name}")
    return found


def package_modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield pytest.param(path, name, is_package, id=name or "alim_keras")


@pytest.mark.parametrize("path, module, is_package", list(package_modules()))
def test_module_keeps_the_rules(path, module, is_package):
    source = path.read_text(encoding="utf-8")
    assert violations(module, source, is_package) == []


@pytest.mark.parametrize(
    "module, source, expected",
    [
        ("ops", "from alim_keras import losses", "upwards: alim_keras.losses"),
        ("ops", "import alim_keras.losses", "upwards: alim_keras.losses"),
        ("ops", "def f():\n  from alim_keras import train", "alim_keras.train"),
        ("layers.queue", "from ..methods import base", "alim_keras.methods"),
        ("layers.queue", "from .. import callbacks", "alim_keras.callbacks"),
        ("ops", "import alim_keras", "upwards: alim_keras"),
        ("data", "from alim_keras import PiCO", "upwards: alim_keras.PiCO"),
        ("extra", "x = 1", "extra stands in no layer"),
        ("ops", "import tensorflow as tf", "imports tensorflow"),
        ("data.checks", "import tensorflow.io", "imports tensorflow"),
        ("ops", "import tensorflow_datasets", "imports tensorflow_datasets"),
        ("backend.jax", "import tensorflow", "imports tensorflow"),
        ("backend.jax_timing", "import tensorflow", "imports tensorflow"),
        ("backend.tensorflow", "import jax", "imports jax"),
        ("data.loader", "import jax.numpy as jnp", "imports jax"),
        ("ops", "from absl import flags", "imports absl.flags"),
        ("data", "from absl.flags import FLAGS", "imports absl.flags"),
        ("ops", "def f(x):\n    assert x", "has an assert statement"),
        ("ops", "x = 1\n" * 501, "longer than 500 lines"),
    ],
)
def test_each_rule_can_fail(module, source, expected):
    (found,) = violations(module, source)
    assert expected in found


@pytest.mark.parametrize(
    "module, source",
    [
        ("losses", "from alim_keras import ops"),
        ("layers.queue", "from . import prototypes"),
        ("layers.queue", "from alim_keras.layers.prototypes import Prototypes"),
        ("train", "import tensorflow as tf\nfrom alim_keras import data"),
        ("backend.tensorflow_timing", "import tensorflow as tf"),
        ("backend.jax_timing", "from jax import numpy"),
        ("data.sources.tfds", "import tensorflow_datasets as tfds"),
        ("runs.build", "import alim_keras"),
        ("runs.record", "from alim_keras import __version__"),
        ("callbacks", "from alim_keras import __version__"),
        ("cli.kinds", "from absl import flags"),
        ("ops", "from absl import logging"),
        ("", "from alim_keras import callbacks\nfrom alim_keras import PiCO"),
        ("ops", "x = 1\n" * 500),
    ],
)
def test_what_is_allowed(module, source):
    assert violations(module, source) == []


def test_relative_import_in_a_package_file():
    # In layers/__init__.py one dot means layers, in layers/queue.py too.
    assert violations("layers", "from . import queue", is_package=True) == []
    (found,) = violations(
        "layers", "from ..methods import base", is_package=True
    )
    assert "alim_keras.methods.base" in found
