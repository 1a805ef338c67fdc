"""The flags of `python -m alim_keras.export RUN`."""

from alim_keras.cli.command import Command
from alim_keras.cli.kinds import Group


def define(flag_values):
    """Defines all flags of the export command on `flag_values`."""
    group = Group(flag_values, "Export")
    group.path(
        "data_dir",
        None,
        "Where the images lie now, if no longer where the run found them.",
    )
    group.path(
        "images",
        None,
        "Where the images of a table lie now, likewise.",
    )
    group.choice(
        "checkpoint",
        "selected",
        ("selected", "last"),
        "Which epoch's weights: the selected one's, as training exports, or "
        "the last one's.",
    )


COMMAND = Command(
    name="alim_keras.export",
    doc=(
        "Writes saved_model/, model.keras, labels.csv and classes.csv of a run "
        "again, from a checkpoint."
    ),
    define=define,
    words=("run",),
)
