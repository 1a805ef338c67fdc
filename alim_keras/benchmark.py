"""Measures what a training step costs, beside a plain one of its network.

    python -m alim_keras.benchmark --preset=cifar10 --input_shape=32x32x3

`--help` lists all flags; without any, the built-in digits run is measured.
"""

import json
import os
import shlex
import sys

from alim_keras import cli
from alim_keras.cli import benchmark_flags
from alim_keras.errors import ConfigError
from alim_keras.files import write_atomically


def main(settings):
    """Measures, prints a table, and writes `--output`."""
    from alim_keras.benchmarks import material
    from alim_keras.benchmarks import measurement
    from alim_keras.benchmarks import report

    measurement.check(settings)
    if settings.output and os.path.isdir(settings.output):
        raise ConfigError(
            "--output must name a file, not a folder. Received: "
            f"--output={settings.output}"
        )
    training = material.training_data(settings)

    def progress(rounds, seconds):
        if settings.progress != "none":
            print(
                f"round {rounds} of {settings.rounds}, {seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )

    measured = measurement.measure(settings, training, progress)
    command = shlex.join(sys.orig_argv)
    result = report.record(settings, command, training, measured)
    print(report.table(result))
    if settings.output:
        text = json.dumps(result, indent=1, allow_nan=False)
        write_atomically(settings.output, f"{text}\n")


if __name__ == "__main__":
    sys.exit(cli.run(benchmark_flags.COMMAND, main))
