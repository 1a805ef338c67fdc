"""Finds a method class by name or by FILE.py:Class, and reads its options."""

import ast
import inspect
import pathlib
import runpy

from alim_keras.errors import ConfigError
from alim_keras.errors import did_you_mean
from alim_keras.methods import simple
from alim_keras.methods.base import PartialLabelModel
from alim_keras.methods.inputs import arguments_of
from alim_keras.methods.irnet import IRNet
from alim_keras.methods.pico import PiCO
from alim_keras.methods.pico_plus import PiCOPlus

METHODS = {
    "cc": simple.CC,
    "rc": simple.RC,
    "proden": simple.PRODEN,
    "lwc": simple.LWC,
    "lws": simple.LWS,
    "gce": simple.GCE,
    "mse": simple.MSE,
    "mae": simple.MAE,
    "sce": simple.SCE,
    "exp": simple.EXP,
    "pico": PiCO,
    "crdpll": simple.CRDPLL,
    "irnet": IRNet,
    "pico_plus": PiCOPlus,
}
# A run sets these itself, from its data and from flags of their own.
GIVEN = {
    *("backbone", "num_classes", "num_examples", "views", "mean", "std"),
    *("table", "weight_decay", "seed"),
}


def find_method(name):
    """Returns the class that a name stands for, or raises `ConfigError`.

    A name is a key of `METHODS`, or `FILE.py:Class` for a subclass of
    `PartialLabelModel` of one's own.
    """
    if name in METHODS:
        return METHODS[name]
    file, _, class_name = name.rpartition(":")
    if not file.endswith(".py"):
        raise ConfigError(
            f"--method must be one of {', '.join(METHODS)}, or FILE.py:Class "
            f"for one of your own.{did_you_mean(name, METHODS)} Received: "
            f"--method={name}"
        )
    try:
        path = pathlib.Path(file).expanduser()
        members = runpy.run_path(path, run_name=path.stem)
    except (ImportError, OSError, SyntaxError) as error:
        raise ConfigError(
            f"The file of --method={name} cannot be loaded: {error}"
        ) from error
    method = members.get(class_name)
    if not (inspect.isclass(method) and issubclass(method, PartialLabelModel)):
        raise ConfigError(
            f"{file} has no class {class_name} that is a subclass of "
            f"alim_keras.PartialLabelModel. Received: --method={name}"
        )
    return method


def parse_options(text, method):
    """Reads `--method_options`, a dict of arguments of the class `method`.

    The text is `name=value,name=value`, Python numbers, strings, booleans or
    None; a word without quotes is a string. Another form raises `ConfigError`.
    """
    options = {}
    names = set(arguments_of(method)) - GIVEN
    for part in filter(None, (text or "").split(",")):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not value:
            raise ConfigError(
                "--method_options must be name=value,name=value. "
                f"Received: --method_options={text}"
            )
        if name not in names:
            raise ConfigError(
                f"{method.__name__} has no argument {name}; it has "
                f"{', '.join(sorted(names))}.{did_you_mean(name, names)} "
                f"Received: --method_options={text}"
            )
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    return options
