"""The flags of `python -m alim_keras.benchmark`."""

from alim_keras.cli import train_flags
from alim_keras.cli.command import Command
from alim_keras.cli.kinds import Group


def define(flag_values):
    """Defines the benchmark's own flags, and those of training.

    The same names and defaults as training's, so that a preset or a run's
    `run.flags` can be measured as it stands.
    """
    group = Group(flag_values, "Benchmark")
    group.whole("rounds", 15, "Rounds of measurements, at most.", low=1)
    group.number(
        "seconds",
        60.0,
        "Begin no round that would end later than this, warm-up not counted.",
        low=0,
    )
    group.path("output", None, "Write all numbers to this file, as JSON.")
    group.text(
        "input_shape",
        None,
        "Measure on random images of this shape, such as 32x32x3, and random "
        "candidate sets. Without it: on --dataset.",
    )
    group.whole(
        "num_classes", 10, "Classes of the random images.", low=2, high=10**5
    )
    group.whole("num_examples", 10000, "How many random images.", low=1)
    train_flags.define(flag_values)


COMMAND = Command(
    name="alim_keras.benchmark",
    doc=(
        "Measures a training step of ALIM, beside a plain "
        "training step of the same network: one process, in turns. It takes "
        "training's flags too; those that do not shape a step are ignored."
    ),
    define=define,
    presets=train_flags.PUBLISHED,
)
