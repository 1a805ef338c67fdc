"""The final value of every flag of a command, and where it came from."""

import dataclasses

from alim_keras.errors import ConfigError

COMMAND_LINE = "command line"
DEFAULT = "default"
# Not part of what a run computes, so run.flags leaves them out; `preset` is
# replaced by `none`, since its values stand there in full.
_NOT_RECORDED = ("run_dir", "preset", "flagfile", "print_config", "verbose")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Values of a command's flags; `settings.epochs` is the flag's value.

    Attributes:
        command: The `Command` they belong to.
        flag_values: The parsed `absl.flags.FlagValues`.
        origins: Dict of flag name to "command line", "flagfile FILE:LINE",
            "preset NAME (FILE:LINE)" or "default".
        words: Dict of the words that are no flags, by name.
        warnings: Tuple of strings for the user's eye.
    """

    command: object
    flag_values: object
    origins: dict
    words: dict
    warnings: tuple = ()

    def __getattr__(self, name):
        """Returns the value of the flag or word `name`."""
        # Reached only for names that are no field. The guard keeps copy and
        # pickle, which ask before the fields are set, out of a recursion.
        if not name.startswith("_"):
            if name in self.words:
                return self.words[name]
            if name in self.origins:
                return self.flag_values[name].value
        raise AttributeError(f"There is no flag --{name}.")

    def origin(self, name):
        """Returns where the value of the flag `name` came from."""
        return self.origins[name]

    def is_typed(self, name):
        """Returns whether the flag `name` stands on the command line."""
        return self.origins[name] == COMMAND_LINE

    def refuse_typed(self, names, why):
        """Raises `ConfigError` for flags on the command line that go unread.

        Args:
            names: Flags; what a file or a preset says of them may stand.
            why: String, the end of a sentence that begins with the flag.
        """
        for name in filter(self.is_typed, names):
            raise ConfigError(
                f"--{name} {why}; leave it out. Received: "
                f"--{name}={getattr(self, name)}"
            )

    def as_dict(self):
        """Returns a dict of every flag's value."""
        return {name: self.flag_values[name].value for name in self.origins}


def flag_text(name, value):
    """Returns the flag as it is written on a command line."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    # str of a float is the shortest text that reads back as the same float.
    return f"--{name}={value}"


def groups(flag_values):
    """Returns `[(title, flags)]` in the order of definition."""
    return list(flag_values.flags_by_module_dict().items())


def flags_as_text(settings):
    """Writes settings as a flagfile that repeats the run (run.flags).

    Every flag that has a value stands there, the preset's and the defaults
    too: a later version with other defaults or presets repeats the same run.
    The run folder is left out: it is named anew for each repetition.

    Args:
        settings: A `Settings`.

    Returns:
        A string that `cli.read_flags` and `--flagfile` understand.
    """
    lines = [
        f"# Repeats this run: python -m {settings.command.name} "
        "--flagfile=THIS_FILE --run_dir=NEW_FOLDER"
    ]
    if settings.command.presets is not None:
        lines.append(f"# Preset in force: {settings.preset or 'none'}")
        lines.append("--preset=none")
    for title, members in groups(settings.flag_values):
        rows = [
            flag_text(flag.name, flag.value)
            for flag in members
            if flag.value is not None and flag.name not in _NOT_RECORDED
        ]
        if rows:
            lines.extend(("", f"# {title}", *rows))
    return "\n".join(lines) + "\n"


def describe(settings):
    """Writes every flag with its value and origin, for `--print_config`.

    Args:
        settings: A `Settings`.

    Returns:
        A string of several lines.
    """
    rows = []
    for title, members in groups(settings.flag_values):
        rows.append((f"# {title}", None))
        for flag in members:
            text = f"--{flag.name} (not set)"
            if flag.value is not None:
                text = flag_text(flag.name, flag.value)
            rows.append((text, settings.origins[flag.name]))
    width = max(len(text) for text, origin in rows if origin)
    lines = [
        f"{text:<{width}}  # {origin}" if origin else f"\n{text}"
        for text, origin in rows
    ]
    return "\n".join(lines).lstrip("\n") + "\n"
