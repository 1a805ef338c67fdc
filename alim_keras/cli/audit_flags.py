"""The flags of `python -m alim_keras.audit RUN`."""

from alim_keras.cli.command import Command
from alim_keras.cli.kinds import Group


def define(flag_values):
    """Defines all flags of the audit command on `flag_values`."""
    group = Group(flag_values, "Audit")
    group.whole(
        "review",
        200,
        "How many items review.csv lists for a person to look at.",
        low=1,
    )
    group.whole(
        "folds",
        None,
        "Train this many networks, each without one part of the items, and "
        "judge each part by the network that never saw its labels. It takes "
        "as many trainings, and finds more. Without it: what the run's own "
        "network believes.",
        low=2,
        high=100,
    )
    group.whole(
        "fold_epochs",
        None,
        "Epochs of each training of --folds. Without it: as many as the run.",
        low=1,
    )
    group.path(
        "out",
        None,
        "Folder for the tables and the report. Without it: the run's own.",
    )
    group.path(
        "images",
        None,
        "Where the images lie now, if no longer where the run found them.",
    )
    group.path(
        "data_dir",
        None,
        "Where a data set with a name lies now, likewise.",
    )


COMMAND = Command(
    name="alim_keras.audit",
    doc=(
        "Says what is in each training image of a run and which labels a "
        "person should look at again: labels.csv, review.csv, tables of "
        "classes and annotators, and report.html."
    ),
    define=define,
    words=("run",),
)
