"""The command line of every command: flags, presets, help and exit codes.

absl lets the last value of a flag win. So the lines are given to it in order
of strength: the preset's, the flagfile's, then the command line's.
"""

import dataclasses
import shutil
import textwrap

from absl import flags

from alim_keras.app import presets
from alim_keras.app.config import TRAINING
from alim_keras.app.config import Config
from alim_keras.app.config import help_texts
from alim_keras.app.values import did_you_mean
from alim_keras.app.values import path
from alim_keras.app.values import switch
from alim_keras.app.values import text
from alim_keras.errors import ConfigError

COMMAND_LINE = "command line"
_WIDTH = 88


@dataclasses.dataclass(frozen=True)
class PresetConfig:
    """Preset.

    Attributes:
        preset: A published setting, by its name; a wrong name lists all.
            Without it --dataset chooses the published setting of that data
            set; none forbids that.
    """

    preset: str | None = text()


@dataclasses.dataclass(frozen=True)
class CommandLineConfig:
    """Command line.

    Attributes:
        flagfile: A file of flags, one --name=value a line. Its values are
            weaker than the command line's and stronger than the preset's.
        print_config: Print every flag, its value and where it came from, and
            stop.
        verbose: Show the traceback of an error, not one line.
        help: Show the flags that matter most.
        helpfull: Show every flag.
        version: Print the version.
    """

    flagfile: str | None = path()
    print_config: bool = switch(False)
    verbose: bool = switch(False)
    help: bool = switch(False)
    helpfull: bool = switch(False)
    version: bool = switch(False)


@dataclasses.dataclass(frozen=True)
class Command:
    """A command and its flags.

    Args:
        name: String, such as `"train"`.
        doc: What it does, one paragraph.
        groups: Tuple of dataclasses of settings, see `app.config`.
        words: Tuple of names of the words that must follow the command. A
            last name in brackets, `"[paths...]"`, stands for any number.
        examples: Tuple of strings, command lines without `python -m`.
        first: Tuple of the flags that `--help` shows. Defaults to those of
            the first group.

    Example:

    >>> command = Command("toy", "A toy.", TRAINING)
    >>> line = command.parse(["--epochs=3"])
    >>> line.config.train.epochs, line.origins["epochs"]
    (3, 'command line')
    """

    name: str
    doc: str
    groups: tuple
    words: tuple = ()
    examples: tuple = ()
    first: tuple = ()

    @property
    def trains(self):
        """Whether it takes training's flags, and so has presets."""
        return TRAINING[-1] in self.groups

    def all_groups(self):
        """Returns the groups of all flags, the common ones last."""
        presets = (PresetConfig,) if self.trains else ()
        return (*self.groups, *presets, CommandLineConfig)

    def parse(self, arguments):
        """Reads the words of a command line.

        Args:
            arguments: List of strings, without the command itself.

        Returns:
            A `Line`.

        Raises:
            ConfigError: A flag, value, file, preset or word does not fit.
        """
        own, files = _split_flagfiles(arguments)
        layers = []
        for file in files:
            layers += presets.read_file(file)[0]
        layers.append((COMMAND_LINE, own))
        values, origins, words = self._apply(layers)
        setting, preset = {}, None
        if self.trains:
            preset, origin = presets.chosen(values, origins)
        if preset is not None:
            lines, setting = presets.read(preset)
            values, origins, words = self._apply([*lines, *layers])
            values["preset"], origins["preset"] = preset, origin
        asks_help = any(values[n] for n in ("help", "helpfull", "version"))
        return Line(
            self,
            values,
            origins,
            # Whoever asks for help need not know the words yet.
            {} if asks_help else self._name_words(words),
            presets.warn_outside(preset, setting, values),
        )

    def read(self, content, *arguments):
        """Reads the content of a run.flags, then stronger arguments.

        Returns:
            A `Line`, without a preset: run.flags holds every value.
        """
        lines = [line.strip() for line in content.splitlines()]
        lines = [line for line in lines if line.startswith("--")]
        given = [("run.flags", lines), (COMMAND_LINE, list(arguments))]
        return Line(self, *self._apply(given)[:2], {}, ())

    def _apply(self, layers):
        """Returns values, origins and further words of lines of flags.

        Args:
            layers: List of `(origin, list of strings)`, the weakest first.
        """
        parsed = flags.FlagValues()
        parsed.set_gnu_getopt()
        for group in self.all_groups():
            texts = help_texts(group)
            for field in dataclasses.fields(group):
                kind = field.metadata["kind"]
                flag = flags.Flag(
                    _Parser(kind),
                    None,
                    field.name,
                    field.default,
                    texts[field.name],
                    boolean=kind.name == "switch",
                )
                flags.DEFINE_flag(flag, parsed, group.__name__)
        origins = dict.fromkeys(parsed, presets.DEFAULT)
        counts = dict.fromkeys(parsed, 0)
        words = []
        for origin, line in layers:
            try:
                _, *more = parsed([self.name, *line])
            except flags.UnrecognizedFlagError as error:
                near = did_you_mean(error.flagname, parsed, "--{}")
                raise ConfigError(
                    f"Unknown flag --{error.flagname}.{near} --helpfull lists "
                    f"all. ({origin})"
                ) from None
            except (flags.Error, ValueError) as error:
                raise ConfigError(f"{error} ({origin})") from None
            if more and origin != COMMAND_LINE:
                raise ConfigError(
                    "Expected a line --name=value, a comment or nothing. "
                    f"Received: {' '.join(line)!r} ({origin})"
                )
            words += more
            for name, count in counts.items():
                if parsed[name].present > count:
                    origins[name] = origin
                    counts[name] = parsed[name].present
        values = {name: parsed[name].value for name in parsed}
        return values, origins, words

    def _name_words(self, words):
        last = self.words[-1] if self.words else ""
        fixed = self.words[:-1] if last.startswith("[") else self.words
        if len(words) < len(fixed):
            usage = " ".join(self.words).upper()
            raise ConfigError(
                f"Expected {usage} after alim_keras.{self.name}. "
                f"Received: {' '.join(words) or 'nothing'}"
            )
        named = dict(zip(fixed, words))
        if fixed != self.words:
            named[last.strip("[.]")] = words[len(fixed) :]
        elif len(words) > len(fixed):
            raise ConfigError(
                f"Unexpected word {words[len(fixed)]!r}: flags are written "
                "--name=value, switches --name or --noname."
            )
        return named

    def help(self, full=False):
        """Returns the text of `--help` or `--helpfull`."""
        width = min(shutil.get_terminal_size().columns, _WIDTH)
        words = "".join(f" {name.upper()}" for name in self.words)
        lines = [f"python -m alim_keras.{self.name}{words} [--flag=value ...]"]
        lines += ["", *textwrap.wrap(self.doc, width)]
        names = [f.name for f in dataclasses.fields(self.groups[0])]
        shown = self.first or (*names, "verbose", "helpfull", "version")
        if self.examples:
            lines += ["", "Examples:"]
            lines += [f"  python -m alim_keras.{one}" for one in self.examples]
        for group in self.all_groups():
            members = [
                field
                for field in dataclasses.fields(group)
                if full or field.name in shown
            ]
            if members:
                lines += ["", f"{_title(group)}:"]
            texts = help_texts(group)
            for field in members:
                lines += _flag_help(field, texts[field.name], width)
        if not full:
            lines += ["", "--helpfull shows every flag."]
        return "\n".join(lines) + "\n"


@dataclasses.dataclass(frozen=True)
class Line:
    """A command line that was read.

    Attributes:
        command: The `Command`.
        values: Dict from a flag's name to its value.
        origins: Dict from a flag's name to "command line", "flagfile
            FILE:LINE", "preset NAME (FILE:LINE)" or "default".
        words: Dict of the words that are no flags, by name.
        warnings: Tuple of strings for the user.
    """

    command: Command
    values: dict
    origins: dict
    words: dict
    warnings: tuple = ()

    @property
    def config(self):
        """The `Config` of training's flags."""
        return Config.from_flags(self.values)

    @property
    def options(self):
        """The command's own settings: an instance of its first group."""
        group = self.command.groups[0]
        names = [field.name for field in dataclasses.fields(group)]
        return group(**{name: self.values[name] for name in names})

    def refuse_typed(self, names, why):
        """Raises `ConfigError` for flags on the command line that go unread.

        Args:
            names: Flags; what a file or a preset says of them may stand.
            why: String, the end of a sentence that begins with the flag.
        """
        for name in names:
            if self.origins.get(name) == COMMAND_LINE:
                raise ConfigError(
                    f"--{name} {why}; leave it out. Received: "
                    f"{flag_text(name, self.values[name])}"
                )

    def describe(self):
        """Returns every flag with its value and origin, for --print_config."""
        rows = []
        for group in self.command.all_groups():
            rows.append((f"# {_title(group)}", None))
            for field in dataclasses.fields(group):
                name, value = field.name, self.values[field.name]
                line = f"--{name} (not set)"
                if value is not None:
                    line = flag_text(name, value)
                rows.append((line, self.origins[name]))
        width = max(len(line) for line, origin in rows if origin)
        return "".join(
            f"{line:<{width}}  # {origin}\n" if origin else f"\n{line}\n"
            for line, origin in rows
        ).lstrip("\n")


class _Parser(flags.ArgumentParser):
    """absl's view of a `Kind`."""

    def __init__(self, kind):
        self.kind = kind

    def parse(self, argument):
        # Defaults come as values.
        return self.kind.parse(argument) if type(argument) is str else argument

    def flag_type(self):
        return self.kind.name


def flag_text(name, value):
    """Returns the flag as it is written on a command line."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    # str of a float is the shortest text that reads back as the same float.
    return f"--{name}={value}"


def flags_as_text(config, command="train"):
    """Returns the content of run.flags: a flagfile that repeats the run.

    Every flag that has a value stands there, the preset's and the defaults
    too: a later version with other defaults or presets repeats the same run.
    The run folder is left out, since each repetition has its own.
    """
    lines = [
        f"# Repeats this run: python -m alim_keras.{command} "
        "--flagfile=THIS_FILE --run_dir=NEW_FOLDER",
        "--preset=none",
    ]
    values = config.as_dict()
    for group in TRAINING:
        rows = [
            flag_text(field.name, values[field.name])
            for field in dataclasses.fields(group)
            if values[field.name] is not None and field.name != "run_dir"
        ]
        lines += ["", f"# {_title(group)}", *rows]
    return "\n".join(lines) + "\n"


def _split_flagfiles(arguments):
    """Returns the command line without --flagfile, and the files."""
    own, files = [], []
    rest = iter(arguments)
    for word in rest:
        name, equals, file = word.lstrip("-").partition("=")
        if not word.startswith("-") or name != "flagfile":
            own.append(word)
            continue
        file = file if equals else next(rest, "")
        if not file:
            raise ConfigError("--flagfile needs a file: --flagfile=FILE")
        files.append(file)
    return own, files


def _title(group):
    return group.__doc__.splitlines()[0].rstrip(".")


def _flag_help(field, help_text, width):
    kind = field.metadata["kind"]
    usage = f"  --{field.name}=<{kind.describe()}>"
    if kind.name == "switch":
        usage = f"  --[no]{field.name}"
    if field.default is not None:
        shown = field.default
        if kind.name == "switch":
            shown = flag_text(field.name, field.default)
        help_text += f" Default: {shown}."
    indent = " " * 6
    wrapped = textwrap.wrap(
        help_text, width, initial_indent=indent, subsequent_indent=indent
    )
    return [usage, *wrapped]
