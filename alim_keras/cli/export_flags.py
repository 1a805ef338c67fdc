"""The flags of `python -m alim_keras.export RUN`."""

from alim_keras.cli.command import Command
from alim_keras.cli.kinds import Group


def define(flag_values):
    """Defines all flags of the export command on `flag_values`."""
    Group(flag_values, "Export").choice(
        "checkpoint",
        "selected",
        ("selected", "last"),
        "Which epoch's weights: the selected one's, as training exports, or "
        "the last one's.",
    )


COMMAND = Command(
    name="alim_keras.export",
    doc=(
        "Writes saved_model/, model.keras and labels.csv of a run again, from "
        "a checkpoint."
    ),
    define=define,
    words=("run",),
)
