"""Flagfiles, and the presets among them.

A preset is a flagfile of the package, known by its name. Its comment
`# setting: dataset=... ambiguity=...` says which published setting it is for.
"""

import dataclasses
import pathlib

import alim_keras
from alim_keras.app.config import TRAINING
from alim_keras.app.values import did_you_mean
from alim_keras.errors import ConfigError

DEFAULT = "default"
# What --dataset=NAME alone means, for the data sets of the paper.
PUBLISHED = ("cifar10", "cifar100", "cifar100h", "cub200")
_SETTING = "# setting:"
# A file of this name is there to be included: it describes no setting.
_BASE_SUFFIX = "_base"


def names():
    """Returns the sorted names of the presets."""
    stems = (file.stem for file in _folder().glob("*.flags"))
    return sorted(name for name in stems if not name.endswith(_BASE_SUFFIX))


def read_file(path, label="flagfile {}", chain=()):
    """Reads a flagfile and what it includes, the weakest first.

    Returns:
        `(layers, setting)`: a list of `(origin, [line])`, and a dict of flag
        to text, the published setting that a comment states.
    """
    file = _absolute(path)
    if file in chain:
        names = " -> ".join(one.name for one in (*chain, file))
        raise ConfigError(f"The flagfile {file} includes itself: {names}")
    try:
        content = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        siblings = []
        if file.parent.is_dir():
            siblings = [entry.name for entry in file.parent.iterdir()]
        reason = getattr(error, "strerror", None) or "no UTF-8 text"
        raise ConfigError(
            f"The flagfile {file} cannot be read: {reason}."
            f"{did_you_mean(file.name, siblings)}"
        ) from None
    own, included, setting, own_setting = [], [], {}, {}
    for number, line in enumerate(map(str.strip, content.splitlines()), 1):
        if line.startswith(_SETTING):
            pairs = line.removeprefix(_SETTING).split()
            own_setting = dict(pair.split("=", 1) for pair in pairs)
        if not line or line.startswith(("#", "//")):
            continue
        if line.startswith("--flagfile="):
            inner = _absolute(line.partition("=")[2], file.parent)
            lines, setting = read_file(inner, label, (*chain, file))
            included += lines
        else:
            own.append((label.format(f"{file.name}:{number}"), [line]))
    return [*included, *own], own_setting or setting


def _absolute(file, folder="."):
    return (pathlib.Path(folder) / pathlib.Path(file).expanduser()).resolve()


def _folder():
    package = pathlib.Path(alim_keras.__file__).resolve().parent
    # The wheel carries flags/ inside the package, a checkout beside it.
    installed = package / "flagfiles"
    return installed if installed.is_dir() else package.parent / "flags"


def chosen(values, origins):
    """Returns the preset in force, or None, and where it came from."""
    if origins["preset"] != DEFAULT:
        name = values["preset"]
        return None if name == "none" else name, origins["preset"]
    dataset = values["dataset"]
    if dataset in PUBLISHED:
        return dataset, f"implied by --dataset={dataset}"
    return None, DEFAULT


def read(name):
    """Reads the preset of a name; see `read_file`."""
    known = names()
    if name not in known:
        raise ConfigError(
            f"Unknown preset {name!r}.{did_you_mean(name, known)} Presets: "
            f"{', '.join(known)}. A file of your own goes to --flagfile. "
            f"Received: --preset={name}"
        )
    file = _folder() / f"{name}.flags"
    return read_file(file, f"preset {name} ({{}})")


def warn_outside(preset, setting, values):
    """Returns warnings for a preset used outside its published setting."""

    def differences(stated):
        kinds = {
            field.name: field.metadata["kind"]
            for group in TRAINING
            for field in dataclasses.fields(group)
        }
        return [
            name
            for name, stated_text in stated.items()
            if kinds[name].parse(stated_text) != values[name]
        ]

    if not (differing := differences(setting)):
        return ()
    stated = " ".join(f"{k}={v}" for k, v in setting.items())
    received = " ".join(f"{name}={values[name]}" for name in differing)
    start = (
        f"the preset {preset} is the published setting for {stated}, but this "
        f"run has {received}"
    )
    for other in names():
        other_setting = read(other)[1]
        if other_setting and not differences(other_setting):
            return (f"{start}; for that there is --preset={other}.",)
    return (f"{start}; no preset is published for that.",)
