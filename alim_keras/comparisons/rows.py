"""The rows of a comparison: a method, with or without its plug-ins."""

import dataclasses

from alim_keras.cli.kinds import near
from alim_keras.errors import ConfigError

MARKS = ("alim", "mixup", "nomixup")
# Flags that mean ALIM and nothing else: a row without it has their defaults,
# so that it is the method itself.
ALIM_FLAGS = ("lam", "lam_per_class", "norm", "scale_factor", "noise_rate")
# What a row must share with the others, or what has a spelling of its own.
_FIXED = (
    "method seed ambiguity noise_level run_dir preset flagfile print_config "
    "verbose backend distribute replicas candidates_file save_candidates "
    "dataset data_dir download train_size progress deterministic"
).split()


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        method: As `--method` takes it.
        alim: Whether ALIM adjusts its pseudo labels.
        mixup: True or False where the row says so, None as the flags have it.
        options: Tuple of pairs `(flag, text)` for this row alone.
    """

    method: str
    alim: bool = False
    mixup: bool | None = None
    options: tuple = ()

    @property
    def name(self):
        """The row as it is written in `--methods`, marks in one order."""
        name = self.method
        if self.alim:
            name += "+alim"
        if self.mixup is not None:
            name += "+mixup" if self.mixup else "+nomixup"
        if self.options:
            options = ";".join(f"{flag}={text}" for flag, text in self.options)
            name += f"[{options}]"
        return name

    def base(self):
        """The same row without ALIM."""
        options = tuple(o for o in self.options if o[0] not in ALIM_FLAGS)
        return dataclasses.replace(self, alim=False, options=options)


def parse_rows(text, flags):
    """Reads `--methods`.

    Args:
        text: Rows, separated by commas that are not within brackets.
        flags: Mapping with the names of training's flags as keys.

    Returns:
        A list of `Row`.

    Raises:
        ConfigError: If the text is malformed.

    Example:

    >>> [row.name for row in parse_rows("rc, rc+mixup+alim", {})]
    ['rc', 'rc+alim+mixup']
    """
    return [_parse(piece.strip(), text, flags) for piece in _split(text)]


def _split(text):
    """Splits at the commas outside of brackets."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    if depth:
        raise ConfigError(
            "--methods has a bracket without its partner. Received: "
            f"--methods={text}"
        )
    return pieces


def _parse(piece, text, flags):
    head, bracket, rest = piece.partition("[")
    method, *marks = (part.strip() for part in head.split("+"))
    if not method or (bracket and not rest.endswith("]")):
        raise ConfigError(
            "A row must be NAME, NAME+alim, NAME+mixup or "
            f"NAME[flag=value;flag=value]. Received: {piece!r} in "
            f"--methods={text}"
        )
    for mark in marks:
        if mark not in MARKS or marks.count(mark) > 1:
            raise ConfigError(
                f"After the method a row takes +{', +'.join(MARKS)}, each "
                f"once.{near(mark, MARKS, '+{}')} Received: {piece}"
            )
    if "mixup" in marks and "nomixup" in marks:
        raise ConfigError(
            f"A row is with mixup or without it. Received: {piece}"
        )
    mixup = "mixup" in marks if {"mixup", "nomixup"} & set(marks) else None
    options = _options(rest[:-1], piece, flags) if bracket else ()
    row = Row(method, "alim" in marks, mixup, options)
    _check_marks(row, dict(options))
    return row


def _options(text, piece, flags):
    found = {}
    for part in text.split(";"):
        flag, equals, value = (word.strip() for word in part.partition("="))
        flag = flag.removeprefix("--")
        if not equals or not value or flag in found:
            raise ConfigError(
                "A row's own flags are written [flag=value;flag=value], each "
                f"once. Received: {piece}"
            )
        if flag in _FIXED:
            raise ConfigError(
                f"--{flag} is not for one row alone. Received: {piece}"
            )
        if flag not in flags:
            raise ConfigError(
                f"Training has no flag --{flag}.{near(flag, flags, '--{}')} "
                f"Received: {piece}"
            )
        found[flag] = value
    return tuple(found.items())


def _check_marks(row, options):
    wrong = [flag for flag in ALIM_FLAGS if flag in options and not row.alim]
    # The norm is also that of the method's own pseudo labels.
    if wrong and wrong != ["norm"]:
        raise ConfigError(
            f"--{wrong[0]} is ALIM's: write {row.method}+alim[...]. "
            f"Received: {row.name}"
        )
    if "mixup_weight" in options and row.mixup is not None:
        raise ConfigError(
            "Either +mixup or a mixup_weight of the row's own. Received: "
            f"{row.name}"
        )
