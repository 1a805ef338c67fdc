"""The command line of every command: flags, flagfiles, presets and help.

absl lets the last value of a flag win. So lines are given to it in order of
strength: the preset's (a flagfile of the package), the flagfile's, the typed.
"""

import dataclasses
import inspect
import pathlib
import re
import types

from absl import flags

import alim_keras
from alim_keras.app import defaults
from alim_keras.app import values as kinds
from alim_keras.app.config import TRAINING
from alim_keras.app.config import Config
from alim_keras.errors import ConfigError
from alim_keras.errors import did_you_mean

COMMAND_LINE, DEFAULT = "command line", "default"


@dataclasses.dataclass(frozen=True)
class CommandLineConfig:
    """Command line.

    Attributes:
        preset: A published setting, by its name; a wrong name lists all.
            Without it --dataset chooses that of the data set; none forbids it.
        flagfile: A file of flags, one --name=value a line: weaker than the
            command line, stronger than the preset.
        print_config: Print every flag, its value and where it came from.
        verbose: Show the traceback of an error, not one line.
        help: Show the flags that matter most.
        helpfull: Show every flag.
        version: Print the version.
    """

    preset: str | None = kinds.text()
    flagfile: str | None = kinds.path()
    print_config: bool = kinds.switch(default=False)
    verbose: bool = kinds.switch(default=False)
    help: bool = kinds.switch(default=False)
    helpfull: bool = kinds.switch(default=False)
    version: bool = kinds.switch(default=False)


@dataclasses.dataclass(frozen=True)
class Command:
    """A command and its flags.

    `doc` is the text of `--help`, `groups` are dataclasses of settings,
    `words` name the words that must follow the command (a last one in
    brackets, `"[paths...]"`, any number of them), `examples` are command lines
    without `python -m`, and `first` the flags that `--help` shows, by default
    the first group's.
    """

    name: str
    doc: str
    groups: tuple
    words: tuple = ()
    examples: tuple = ()
    first: tuple = ()

    def parse(self, arguments):
        """Reads the words of a command line, a list of strings; a `Line`."""
        typed, files = _split_flagfiles(arguments)
        layers = [layer for file in files for layer in read_flagfile(file)]
        layers.append((COMMAND_LINE, typed))
        values, origins, words = self.apply(layers)
        preset, origin = values["preset"], origins["preset"]
        dataset = values.get("dataset")
        # What --dataset=NAME alone means, for the data sets of the paper.
        if origin == DEFAULT and dataset in preset_names():
            preset, origin = dataset, f"implied by --dataset={dataset}"
        if preset not in (None, "none"):
            layers = [*read_preset(preset), *layers]
            values, origins, words = self.apply(layers)
        values["preset"], origins["preset"] = preset, origin
        if "epochs" in values:
            if defaults.is_own(values["dataset"], values["network"]):
                for name in defaults.STANDARD:
                    if values[name] is None:
                        origins[name] = "chosen from the data; check says what"
            else:
                values = defaults.standard(values)
        if not any(values[name] for name in ("help", "helpfull", "version")):
            words = self._name_words(words)
        return Line(self, values, origins, words)

    def all_groups(self):
        """Returns the groups of all flags, the common ones last."""
        return (*self.groups, CommandLineConfig)

    def define(self, names=None):
        """Returns absl's flags of the command, or those of some names."""
        parsed = flags.FlagValues()
        parsed.set_gnu_getopt()
        for group in self.all_groups():
            for field, text_ in help_texts(group):
                if names is None or field.name in names:
                    is_list = field.name == "where"
                    kind = flags.MultiFlag if is_list else flags.Flag
                    flag = kind(
                        *(field.metadata["parser"], None),
                        *(field.name, field.default, text_),
                        boolean=isinstance(field.default, bool),
                    )
                    flags.DEFINE_flag(flag, parsed, _title(group))
        return parsed

    def apply(self, layers):
        """Returns values, origins and further words.

        `layers` is a list of (origin, list of strings), the weakest first.
        """
        parsed, words = self.define(), []
        origins = dict.fromkeys(parsed, DEFAULT)
        for origin, layer in layers:
            for name in parsed:
                # So that conditions add up within a layer only.
                parsed[name].present = 0
            # In a file a flag and its value are in one line.
            is_file = origin != COMMAND_LINE
            lines = [[word] for word in layer] if is_file else [layer]
            try:
                for line in lines:
                    _, *words = parsed([self.name, *line])
                    if words and is_file:
                        what = f"--name=value expected, not {words[0]!r}"
                        raise ValueError(what)
            except flags.UnrecognizedFlagError as error:
                name = f"--{error.flagname}"
                close = did_you_mean(name, [f"--{known}" for known in parsed])
                raise ConfigError(
                    f"Unknown flag {name}.{close} --helpfull lists all. "
                    f"({origin})"
                ) from None
            except (flags.Error, ValueError) as error:
                raise ConfigError(f"{error} ({origin})") from None
            present = [name for name in parsed if parsed[name].present]
            origins |= dict.fromkeys(present, origin)
        values = {name: parsed[name].value for name in parsed}
        if values.get("where"):
            values["where"] = ",".join(values["where"])
        return values, origins, words

    def _name_words(self, words):
        fixed = [name for name in self.words if not name.startswith("[")]
        further, rest = self.words[len(fixed) :], words[len(fixed) :]
        if len(words) < len(fixed) or (rest and not further):
            wanted = " ".join(self.words).upper() or "flags only"
            raise ConfigError(
                f"Expected {wanted} after alim_keras.{self.name}; flags are "
                "written --name=value, switches --name or --noname. Received: "
                f"{' '.join(words) or 'nothing'}"
            )
        named = dict(zip(fixed, words))
        return named | {name.strip("[.]"): rest for name in further}

    def help(self, full=False):
        """Returns the text of `--help` or `--helpfull`."""
        words = "".join(f" {name.upper()}" for name in self.words)
        lines = [f"python -m alim_keras.{self.name}{words} [--flag=value ...]"]
        lines += ["", flags.text_wrap(self.doc.strip()), "", "Examples:"]
        lines += [f"  python -m alim_keras.{line}" for line in self.examples]
        own = [field.name for field in dataclasses.fields(self.groups[0])]
        shown = self.define(None if full else self.first or own)
        titles = map(_title, self.all_groups())
        lines += filter(None, map(shown.module_help, titles))
        if not full:
            lines += ["", "--helpfull shows every flag."]
        return "\n".join(lines) + "\n"


@dataclasses.dataclass(frozen=True)
class Line:
    """A command line that was read.

    `values` and `origins` are dicts from a flag's name to its value and to
    "command line", "flagfile FILE", "preset NAME" or "default"; `words` are the
    words that are no flags, by name.
    """

    command: Command
    values: dict
    origins: dict
    words: dict

    @property
    def config(self):
        """The `Config` of training's flags."""
        return Config.from_flags(self.values)

    @property
    def options(self):
        """The value of every flag, by its name, as attributes."""
        return types.SimpleNamespace(**self.values)

    def refuse_typed(self, names, why):
        """Raises for flags that go unread, but not for those in files."""
        for name in names:
            if self.origins.get(name) == COMMAND_LINE:
                given = flag_text(name, self.values[name])
                raise ConfigError(
                    f"--{name} {why}; leave it out. Received: {given}"
                )

    def describe(self):
        """Returns every flag with its value and origin, for --print_config."""
        lines = []
        for group in self.command.all_groups():
            lines += ["", f"# {_title(group)}"]
            for field in dataclasses.fields(group):
                line = flag_text(field.name, self.values[field.name])
                lines.append(f"{line:<39} # {self.origins[field.name]}")
        return "\n".join(lines[1:]) + "\n"


def flag_text(name, value):
    """Returns the flag as it is written on a command line."""
    if value is None:
        return f"--{name} (not set)"
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    # str of a float is the shortest text that reads back as the same float.
    return f"--{name}={value}"


def flags_as_text(config):
    """Returns the content of run.flags: a flagfile that repeats the run.

    Defaults stand there, too: a later version may have others.
    """
    values = {**config.as_dict(), "run_dir": None}
    lines = [
        "# Repeats this run: python -m alim_keras.train "
        "--flagfile=THIS_FILE --run_dir=NEW_FOLDER",
        "--preset=none",
    ]
    for group in TRAINING:
        lines += ["", f"# {_title(group)}"]
        for field in dataclasses.fields(group):
            if values[field.name] is not None:
                lines.append(flag_text(field.name, values[field.name]))
    return "\n".join(lines) + "\n"


def read_flags(content):
    """Returns the `Config` in a run.flags, which includes no other file."""
    words, files = _split_flagfiles(_flag_lines(content))
    if files:
        raise ConfigError(f"run.flags includes another file, {files[0]}")
    values, *_ = Command("train", "", TRAINING).apply([("run.flags", words)])
    return Config.from_flags(values)


def help_texts(group):
    """Returns pairs (field, help) of a dataclass of settings.

    Its docstring holds the help, under "Attributes:".
    """
    listed = inspect.getdoc(group).partition("Attributes:\n")[2]
    names_and_texts = re.split(r"^    (\w+): ", listed, flags=re.MULTILINE)[1:]
    texts = dict(zip(names_and_texts[::2], names_and_texts[1::2]))
    fields = dataclasses.fields(group)
    return [(field, " ".join(texts[field.name].split())) for field in fields]


def preset_folder():
    """Returns the folder of the presets: in the wheel, or the checkout's."""
    package = pathlib.Path(alim_keras.__file__).resolve().parent
    installed = package / "flagfiles"
    return installed if installed.is_dir() else package.parent / "flags"


def preset_names():
    """Returns the sorted names of the presets, without the base files."""
    stems = (file.stem for file in preset_folder().glob("*.flags"))
    return sorted(name for name in stems if not name.endswith("_base"))


def read_preset(name):
    """Reads the preset of a name; see `read_flagfile`."""
    known = preset_names()
    if name not in known:
        raise ConfigError(
            f"Unknown preset {name!r}.{did_you_mean(name, known)} Presets: "
            f"{', '.join(known)}. A file of your own goes to --flagfile."
        )
    return read_flagfile(preset_folder() / f"{name}.flags", f"preset {name}")


def read_flagfile(file, origin=None, chain=()):
    """Returns `(origin, words)` of a flagfile and of those it includes.

    The weakest come first: a file overrides what it includes.
    """
    file = pathlib.Path(file).expanduser().resolve()
    if file in chain:
        raise ConfigError(f"The flagfile {file} includes itself")
    try:
        content = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no UTF-8 text"
        message = f"The flagfile {file} cannot be read: {reason}"
        raise ConfigError(message) from None
    own, included = _split_flagfiles(_flag_lines(content))
    layers = []
    for name in included:
        inner = file.parent / pathlib.Path(name).expanduser()
        layers += read_flagfile(inner, origin, (*chain, file))
    return [*layers, (origin or f"flagfile {file.name}", own)]


def _flag_lines(content):
    lines = map(str.strip, content.splitlines())
    return [line for line in lines if line and not line.startswith(("#", "//"))]


def _split_flagfiles(words):
    """Returns the words without --flagfile, and the names of the files."""
    own, files, rest = [], [], iter(words)
    for word in rest:
        name, equals, file = word.partition("=")
        if name not in ("--flagfile", "-flagfile"):
            own.append(word)
            continue
        files.append(file if equals else next(rest, ""))
        if not files[-1]:
            raise ConfigError("--flagfile needs a file: --flagfile=FILE")
    return own, files


def _title(group):
    return group.__doc__.splitlines()[0].rstrip(".")
