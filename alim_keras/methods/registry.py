"""Methods by name, the project's own and everybody else's."""

import ast
import difflib
import importlib
import importlib.util
import inspect
import os

from alim_keras.errors import ConfigError
from alim_keras.methods.base import PartialLabelModel

# What a run gives every method, by its data and by flags of their own.
GIVEN = {
    *("backbone", "num_classes", "num_examples", "views", "mean", "std"),
    *("table", "weight_decay", "seed"),
}


def find_method(name, methods):
    """Returns the class that a method's name stands for.

    Args:
        name: A key of `methods`, or `FILE.py:Class` or `module:Class` for a
            subclass of `PartialLabelModel` of one's own.
        methods: `alim_keras.methods.METHODS`.

    Raises:
        ConfigError: If there is no such class.
    """
    if name in methods:
        return methods[name]
    place, _, class_name = name.rpartition(":")
    if not place:
        near = difflib.get_close_matches(name, methods, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ConfigError(
            f"--method must be one of {', '.join(methods)}, or FILE.py:Class "
            f"for one of your own.{hint} Received: --method={name}"
        )
    found = getattr(_module(place, name), class_name, None)
    if not (inspect.isclass(found) and issubclass(found, PartialLabelModel)):
        raise ConfigError(
            f"{place} has no class {class_name} that is a subclass of "
            f"alim_keras.PartialLabelModel. Received: --method={name}"
        )
    return found


def _module(place, name):
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = os.path.abspath(os.path.expanduser(place))
        stem = os.path.splitext(os.path.basename(path))[0]
        spec = importlib.util.spec_from_file_location(stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except (ImportError, OSError, SyntaxError) as error:
        raise ConfigError(
            f"The module of --method={name} cannot be loaded: {error}"
        ) from error


def arguments_of(method):
    """Returns the names of all arguments that a method's class takes."""
    names = set()
    for base in method.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(base.__init__).parameters.values()
        names |= {
            p.name
            for p in parameters
            if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
        }
        if base is PartialLabelModel or not any(
            p.kind == p.VAR_KEYWORD for p in parameters
        ):
            break
    return names - {"self"}


def default_of(method, argument):
    """Returns the default of an argument, where the class or a base sets it."""
    for base in method.__mro__:
        if "__init__" in vars(base):
            parameters = inspect.signature(base.__init__).parameters
            if argument in parameters:
                return parameters[argument].default
    raise TypeError(f"{method.__name__} has no argument {argument}")


def parse_options(text, method):
    """Reads `--method_options`, a dict of a method's own arguments.

    Args:
        text: `name=value,name=value`, Python numbers, strings, booleans or
            None; a word without quotes is a string. None for none.
        method: The class they are for.

    Raises:
        ConfigError: If the text is malformed or the class has no such
            argument.
    """
    found = {}
    known = arguments_of(method) - GIVEN
    for part in filter(None, (text or "").split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise ConfigError(
                "--method_options must be name=value,name=value. "
                f"Received: --method_options={text}"
            )
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(
                f"{method.__name__} has no argument {name}; it has "
                f"{', '.join(sorted(known))}.{hint} Received: "
                f"--method_options={text}"
            )
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found
