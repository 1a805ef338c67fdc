"""A command of the package: its flags, and how a command line is read.

absl reads flags and flagfiles by position, ignores stray words and knows no
presets. Here the strongest source wins, wherever it stands on the line:
command line, then --flagfile, then the preset, then the default. Within one
source the last wins.
"""

import collections.abc
import dataclasses

from absl import flags

from alim_keras.cli import flagfiles
from alim_keras.cli import kinds
from alim_keras.cli.settings import COMMAND_LINE
from alim_keras.cli.settings import DEFAULT
from alim_keras.cli.settings import Settings
from alim_keras.errors import ConfigError

NO_PRESET = "none"


@dataclasses.dataclass(frozen=True)
class Command:
    """What a command is called, says and accepts.

    Args:
        name: Module name, such as "alim_keras.train".
        doc: One paragraph that `--help` shows.
        define: Function that defines the command's flags on the
            `absl.flags.FlagValues` it is given.
        presets: Mapping of a data set's name to the preset that
            `--dataset=NAME` alone stands for. `None` for a command without
            presets.
        words: Tuple of names of the words that must follow the command, such
            as `("run",)`. A last name that ends with "..." takes one or more;
            in brackets, `"[paths...]"`, none will do too.

    Example:

    >>> def define(flag_values):
    ...     group = kinds.Group(flag_values, "Run")
    ...     group.whole("epochs", 20, "Passes over the data.", low=1)
    >>> settings = Command("alim_keras.toy", "A toy.", define).parse(
    ...     ["--epochs=3"]
    ... )
    >>> settings.epochs, settings.origin("epochs")
    (3, 'command line')
    """

    name: str
    doc: str
    define: collections.abc.Callable
    presets: collections.abc.Mapping | None = None
    words: tuple = ()

    def new_flags(self):
        """Returns a fresh `absl.flags.FlagValues` with all flags defined."""
        flag_values = flags.FlagValues()
        self.define(flag_values)
        group = kinds.Group(flag_values, "Command line")
        if self.presets is not None:
            group.text(
                "preset",
                None,
                "A published setting, by its name; a wrong name lists all. "
                "Without it --dataset chooses the published setting of that "
                f"data set; '{NO_PRESET}' forbids that.",
            )
        group.path(
            "flagfile",
            None,
            "A file of flags, one --name=value a line. Its values are weaker "
            "than the command line's and stronger than the preset's.",
        )
        group.switch(
            "print_config",
            False,
            "Print every flag, its value and where it came from, and stop.",
        )
        group.switch(
            "verbose", False, "Show the traceback of an error, not one line."
        )
        return flag_values

    def parse(self, arguments):
        """Reads the words of a command line.

        Args:
            arguments: List of strings, without the command itself.

        Returns:
            A `Settings`.

        Raises:
            ConfigError: If a flag, value, file, preset or word does not fit.
        """
        flag_values = self.new_flags()
        line, words = _read_line(arguments, flag_values)
        from_files = []
        for entry in line:
            if entry.name == "flagfile":
                _parse_entry(entry, flag_values)
                from_files.extend(
                    flagfiles.read(entry.text, flag_values).entries
                )
        given = (*from_files, *line)
        preset, preset_origin = self._preset(given)
        preset_file = flagfiles.FlagFile((), {})
        if preset is not None:
            preset_file = flagfiles.read_preset(preset, flag_values)
        origins = dict.fromkeys(flag_values, DEFAULT)
        for entry in (*preset_file.entries, *given):
            # Weaker values are read too: a wrong one is a wrong file.
            flag_values[entry.name].value = _parse_entry(entry, flag_values)
            origins[entry.name] = entry.origin
        if self.presets is not None:
            flag_values["preset"].value = preset
            origins["preset"] = preset_origin
        _run_validators(flag_values)
        return Settings(
            command=self,
            flag_values=flag_values,
            origins=origins,
            words=self._name_words(words),
            warnings=_outside_setting(preset, preset_file, flag_values),
        )

    def _preset(self, given):
        """Returns the preset in force, or None, and where it came from."""
        if self.presets is None:
            return None, DEFAULT
        last = {entry.name: entry for entry in given}
        if "preset" in last:
            name = last["preset"].text.strip()
            return None if name == NO_PRESET else name, last["preset"].origin
        dataset = None
        if "dataset" in last:
            dataset = _parse_entry(last["dataset"], self.new_flags())
        if dataset in self.presets:
            return self.presets[dataset], f"implied by --dataset={dataset}"
        return None, DEFAULT

    def _name_words(self, words):
        usage = " ".join(name.upper() for name in self.words)
        last = self.words[-1] if self.words else ""
        many, optional = "..." in last, last.startswith("[")
        if len(words) < len(self.words) - optional:
            raise ConfigError(
                f"Expected {usage} after {self.name}. "
                f"Received: {' '.join(words) or 'nothing'}"
            )
        if len(words) > len(self.words) and not many:
            extra = words[len(self.words)]
            raise ConfigError(
                f"Unexpected word {extra!r}: flags are written --name=value, "
                "switches --name or --noname."
            )
        named = dict(zip(self.words, words))
        if many:
            named.pop(last, None)
            name = last.strip("[]").removesuffix("...")
            named[name] = words[len(self.words) - 1 :]
        return named


def read_flags(path, command):
    """Reads a flagfile, such as a run's run.flags, on its own.

    Args:
        path: Path of the file.
        command: The `Command` whose flags it holds.

    Returns:
        A `Settings`.

    Raises:
        ConfigError: As `Command.parse`.
    """
    return command.parse([f"--flagfile={path}"])


def _read_line(arguments, known):
    """Splits a command line into flag entries and other words."""
    entries, words = [], []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words.extend(rest)
            break
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        name, text = flagfiles.split_flag(word, known, COMMAND_LINE)
        if text is None:
            if not rest or rest[0].startswith("--"):
                raise ConfigError(
                    f"--{name} needs a value: write --{name}=value. "
                    f"Received: {word}"
                )
            text = rest.pop(0)
        entries.append(flagfiles.Entry(name, text, COMMAND_LINE))
    return entries, words


def _parse_entry(entry, flag_values):
    try:
        return flag_values[entry.name].parser.parse(entry.text)
    except ValueError as error:
        raise ConfigError(
            f"--{entry.name}: {error} Received: --{entry.name}={entry.text} "
            f"({entry.origin})"
        ) from None


def _run_validators(flag_values):
    """Lets absl check what `absl.flags.register_validator` asked for."""
    flag_values.mark_as_parsed()
    try:
        flag_values.validate_all_flags()
    except flags.Error as error:
        raise ConfigError(f"Flags that do not fit together: {error}") from None


def _outside_setting(preset, preset_file, flag_values):
    """Returns warnings for a preset used outside its published setting."""
    if preset is None:
        return ()
    differing = _differences(preset_file.setting, flag_values)
    if not differing:
        return ()
    stated = " ".join(f"{k}={v}" for k, v in preset_file.setting.items())
    values = " ".join(f"{name}={flag_values[name].value}" for name in differing)
    text = (
        f"the preset {preset} is the published setting for {stated}, but this "
        f"run has {values}"
    )
    for other in flagfiles.preset_names():
        setting = flagfiles.read_preset(other, flag_values).setting
        if setting and not _differences(setting, flag_values):
            return (f"{text}; for that there is --preset={other}.",)
    return (f"{text}; no preset is published for that.",)


def _differences(setting, flag_values):
    return [
        name
        for name, text in setting.items()
        if flag_values[name].parser.parse(text) != flag_values[name].value
    ]
