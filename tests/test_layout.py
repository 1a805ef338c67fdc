"""The package's own rules: imports point downwards, files stay small."""

import ast
import pathlib
import re

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "alim_keras"

# A module may import its own layer and those above it in this list.
LAYERS = (
    ("errors",),
    ("files", "draws"),
    ("ops", "backend"),
    ("losses", "metrics"),
    ("layers", "networks", "augment"),
    ("methods",),
    ("callbacks", "data", "noise_rate"),
    ("report",),
    ("app",),
    ("train", "check", "audit", "review", "predict", "export"),
    ("compare", "benchmark", "__main__"),
)
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}
COMMANDS = (*LAYERS[-2], *LAYERS[-1])
# Where a framework may be imported.
_TENSORFLOW = ("backend", "data.pipeline", "data.known_data", "app.process")
FRAMEWORKS = {
    "tensorflow": _TENSORFLOW,
    "tensorflow_datasets": _TENSORFLOW,
    "jax": ("backend",),
    "absl": ("app",),
}
LONGEST_FILE = 500
MOST_FILES = 90
MOST_LINES = 18_000
# Names of Keras with an underscore that the package relies on.
MOST_PRIVATE_NAMES = 3


def imported_names(tree, package):
    """Yields the dotted name of every import, by statement or by string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            parts = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join((*parts, *filter(None, [node.module])))
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith("import_module")
            and node.args
        ):
            # A name that is computed counts with what stands in it.
            yield ast.unparse(node.args[0]).strip("\"'").removeprefix("f'")


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
        if root in FRAMEWORKS and not within(module, FRAMEWORKS[root]):
            found.append(f"imports {root}")
        if root != "alim_keras":
            is_own = "__name__" in name or "alim_keras" in name
            if is_own and top not in ("", "backend", "__main__"):
                found.append(f"imports by a string: {name}")
        elif top and rest != "__version__":
            # The names that the package itself defines are the methods'.
            rank = RANKS.get(rest.split(".")[0], RANKS["methods"])
            if rank > RANKS.get(top, len(LAYERS)):
                found.append(f"imports upwards: {name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and len(node.bases) > 1:
            bases = [ast.unparse(base) for base in node.bases]
            # Keras and the Trainer, or a base and classes of Python's own.
            theirs = r"(keras|backend)\."
            is_theirs = all(re.match(theirs, base) for base in bases)
            is_plain = all(re.fullmatch(r"[A-Z]\w*", b) for b in bases[1:])
            if not (is_theirs or is_plain or module == "errors"):
                found.append(f"{node.name} is made of mixins: {bases}")
    return found


def package_modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield pytest.param(path, name, is_package, id=name or "alim_keras")


@pytest.mark.parametrize("path, module, is_package", list(package_modules()))
def test_module_keeps_the_rules(path, module, is_package):
    assert violations(module, path.read_text("utf-8"), is_package) == []


def test_the_package_is_small_and_flat():
    paths = list(PACKAGE.rglob("*.py"))
    assert len(paths) <= MOST_FILES
    lines = sum(len(p.read_text("utf-8").splitlines()) for p in paths)
    assert lines <= MOST_LINES
    assert all(len(p.relative_to(PACKAGE).parts) <= 2 for p in paths)


def test_private_names_of_keras():
    """Overridden or called: what a new version of Keras may take away."""
    import keras

    names = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            # The attribute of an object, or the name of a function.
            name = getattr(node, "attr", getattr(node, "name", None))
            if re.match(r"_[a-z]", name or ""):
                names.add(name)
    names &= set(dir(keras.Model))
    assert len(names) <= MOST_PRIVATE_NAMES, names


@pytest.mark.parametrize(
    "module, source, expected",
    [
        ("ops", "from alim_keras import losses", "upwards: alim_keras.losses"),
        ("ops", "import alim_keras.losses", "upwards: alim_keras.losses"),
        ("ops", "def f():\n  from alim_keras import train", "alim_keras.train"),
        ("layers.queue", "from ..methods import base", "alim_keras.methods"),
        ("data", "from alim_keras import report", "upwards: alim_keras.report"),
        (
            "report",
            "import_module('alim_keras.app')",
            "upwards: alim_keras.app",
        ),
        ("data", "import_module(f'{__name__}.x')", "by a string"),
        ("extra", "x = 1", "extra stands in no layer"),
        ("ops", "import tensorflow as tf", "imports tensorflow"),
        ("data.checks", "import tensorflow.io", "imports tensorflow"),
        ("ops", "import tensorflow_datasets", "imports tensorflow_datasets"),
        ("data.loader", "import jax.numpy as jnp", "imports jax"),
        ("data", "from absl.flags import FLAGS", "imports absl"),
        ("ops", "def f(x):\n    assert x", "has an assert statement"),
        ("ops", "x = 1\n" * 501, "longer than 500 lines"),
        ("ops", "class A(Mixing, Fitting, keras.Model):\n  pass", "of mixins"),
    ],
)
def test_each_rule_can_fail(module, source, expected):
    (found,) = violations(module, source)
    assert expected in found
