"""The flags of `python -m alim_keras.check`."""

from alim_keras.cli import train_flags
from alim_keras.cli.command import Command
from alim_keras.cli.kinds import Group


def define(flag_values):
    """Defines the check's own flag, and those of training.

    The line that is checked is the line that trains, with another command.
    """
    group = Group(flag_values, "Check")
    group.path(
        "problems",
        None,
        "Write every image that cannot be read to this CSV file. Without it: "
        "the first twenty are shown.",
    )
    train_flags.define(flag_values)


COMMAND = Command(
    name="alim_keras.check",
    doc=(
        "Reads labels and images as training would, trains nothing, and says "
        "what was found and what will happen. It takes training's flags."
    ),
    define=define,
    presets=train_flags.PUBLISHED,
)
