"""The flags of `python -m alim_keras.compare`."""

from alim_keras.cli import train_flags
from alim_keras.cli.command import Command
from alim_keras.cli.kinds import Group


def define(flag_values):
    """Defines the comparison's own flags, and those of training.

    Training's flags hold for every cell; the comparison's own say in what
    the cells differ.
    """
    group = Group(flag_values, "Comparison")
    group.text(
        "methods",
        "pico,pico+alim",
        "Rows, separated by commas: NAME is the method alone (--lam=0), "
        "NAME+alim with ALIM as --lam says; +mixup and +nomixup set "
        "--mixup_weight to 1 and 0; NAME[flag=value;flag=value] sets any "
        "flag of training for this row.",
    )
    group.text(
        "seeds",
        "3",
        "How many seeds, from 0; or the seeds themselves, separated by "
        "commas (7, is the seed 7 alone).",
    )
    group.text(
        "ambiguities",
        None,
        "Values of q, separated by commas. Without it: that of --ambiguity.",
    )
    group.text(
        "noise_levels",
        None,
        "Values of eta, separated by commas. Without it: that of "
        "--noise_level.",
    )
    group.path(
        "out",
        None,
        "Folder of the cells, tables and plot; the same command continues "
        "what is there. Without it: runs/compare.",
    )
    group.switch(
        "table_only",
        False,
        "Write the tables and the plot from the finished cells; run nothing.",
    )
    train_flags.define(flag_values)


COMMAND = Command(
    name="alim_keras.compare",
    doc=(
        "Trains a grid of methods, noise and seeds, one run after the other, "
        "and writes tables of mean and standard deviation and a plot. The "
        "same command continues; started twice, two processes share the "
        "work. It takes training's flags too, for all cells."
    ),
    define=define,
    presets=train_flags.PUBLISHED,
)
