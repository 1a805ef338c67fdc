"""Flagfiles: text files of flags, one `--name=value` a line, and the presets.

A line that starts with `#` or `//` is a comment, `--flagfile=other.flags`
includes a file (relative to the including one), and a file's own lines win
over what it includes, wherever they stand. A preset is a flagfile of the
package, known by its name; its comment `# setting: dataset=... ambiguity=...`
says which published setting it belongs to.
"""

import dataclasses
import pathlib

from alim_keras.cli import kinds
from alim_keras.errors import ConfigError

_SETTING = "# setting:"
# A file of this name is there to be included: it describes no setting.
_BASE_SUFFIX = "_base"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One flag as it was written: its name, its text and where it stood."""

    name: str
    text: str
    origin: str


@dataclasses.dataclass(frozen=True)
class FlagFile:
    """The content of a flagfile and all that it includes.

    Attributes:
        entries: Tuple of `Entry`, weakest first.
        setting: Dict of flag name to text: the published setting, or empty.
    """

    entries: tuple
    setting: dict


def split_flag(word, known, origin):
    """Splits `--name=value`, `--name` or `--noname` into name and text.

    Args:
        word: String that starts with `-`.
        known: Mapping of flag name to absl flag.
        origin: String. Where the word stood, for the message.

    Returns:
        `(name, text)`; the text is `None` where a value has yet to follow.

    Raises:
        ConfigError: If there is no such flag, or a switch is negated twice.
    """
    name, equals, text = word.lstrip("-").partition("=")
    if name in known:
        if equals:
            return name, text
        is_switch = known[name].flag_type() == "bool"
        return name, "true" if is_switch else None
    positive = name[2:] if name.startswith("no") else None
    if positive in known and known[positive].flag_type() == "bool":
        if equals:
            raise ConfigError(
                f"--{name} takes no value: write --{positive} or --{name}. "
                f"Received: {word} ({origin})"
            )
        return positive, "false"
    raise ConfigError(
        f"Unknown flag --{name}.{kinds.near(name, known, '--{}')} "
        f"--help lists all. Received: {word} ({origin})"
    )


def read(path, known, label="flagfile {}"):
    """Reads a flagfile with all that it includes.

    Args:
        path: Path of the file.
        known: Mapping of flag name to absl flag.
        label: Format string for an entry's origin, given `file:line`.

    Returns:
        A `FlagFile`.

    Raises:
        ConfigError: If a file is missing or unreadable, includes itself or
            holds a line that is no known flag; the message has file and line.
    """
    return _read(pathlib.Path(path).expanduser(), known, label, ())


def _read(path, known, label, chain):
    if path.resolve() in [entry.resolve() for entry in chain]:
        names = " -> ".join(entry.name for entry in (*chain, path))
        raise ConfigError(f"The flagfile {path} includes itself: {names}")
    own, included, setting, own_setting = [], [], {}, {}
    for number, line in enumerate(_text(path, chain).splitlines(), 1):
        line = line.strip()
        place = f"{path}:{number}"
        origin = label.format(f"{path.name}:{number}")
        if line.startswith(_SETTING):
            own_setting = _parse_setting(line, known, place)
        if not line or line.startswith(("#", "//")):
            continue
        if not line.startswith("-"):
            raise ConfigError(
                f"{place}: expected a line --name=value, a comment or nothing. "
                f"Received: {line!r}"
            )
        name, text = split_flag(line, known, place)
        if text is None:
            raise ConfigError(
                f"{place}: --{name} needs a value: write --{name}=value."
            )
        if name == "flagfile":
            inner_path = path.parent / pathlib.Path(text).expanduser()
            inner = _read(inner_path, known, label, (*chain, path))
            included.extend(inner.entries)
            setting = inner.setting
        else:
            own.append(Entry(name, text, origin))
    return FlagFile((*included, *own), own_setting or setting)


def _text(path, chain):
    source = f" (included by {chain[-1]})" if chain else ""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        siblings = []
        if path.parent.is_dir():
            siblings = [entry.name for entry in path.parent.iterdir()]
        raise ConfigError(
            f"There is no flagfile {path}{source}."
            f"{kinds.near(path.name, siblings)}"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"The flagfile {path}{source} is not a UTF-8 text file."
        ) from None
    except OSError as error:
        raise ConfigError(
            f"The flagfile {path}{source} cannot be read: {error.strerror}."
        ) from None


def _parse_setting(line, known, place):
    pairs = {}
    for pair in line[len(_SETTING) :].split():
        name, equals, text = pair.partition("=")
        if not equals or name not in known:
            raise ConfigError(
                f"{place}: expected '{_SETTING} flag=value ...'. "
                f"Received: {pair}"
            )
        pairs[name] = text
    return pairs


def preset_folder():
    """Returns the folder of the preset files, in a checkout or a wheel."""
    package = pathlib.Path(__file__).resolve().parent.parent
    # The wheel carries flags/ inside the package, a checkout beside it.
    installed = package / "flagfiles"
    return installed if installed.is_dir() else package.parent / "flags"


def preset_names():
    """Returns the sorted names of the presets."""
    names = (path.stem for path in preset_folder().glob("*.flags"))
    return sorted(name for name in names if not name.endswith(_BASE_SUFFIX))


def read_preset(name, known):
    """Reads the preset `name`; see `read`.

    Raises:
        ConfigError: If there is no such preset; the message lists all.
    """
    names = preset_names()
    if name not in names:
        raise ConfigError(
            f"Unknown preset {name!r}.{kinds.near(name, names)} Presets: "
            f"{', '.join(names)}. A file of your own goes to --flagfile. "
            f"Received: --preset={name}"
        )
    return read(
        preset_folder() / f"{name}.flags", known, f"preset {name} ({{}})"
    )
