"""Compares methods, with and without ALIM, over noise levels and seeds.

    python -m alim_keras.compare --methods=rc,rc+alim --dataset=fashion_mnist

`--help` lists all flags. The same command continues where it was stopped.
"""

import signal
import sys

from alim_keras import cli
from alim_keras.cli import compare_flags


def main(settings):
    """Runs the cells that are not finished, and writes tables and plot."""
    from alim_keras import backend
    from alim_keras.comparisons import grid
    from alim_keras.comparisons import report
    from alim_keras.comparisons import runner
    from alim_keras.runs import build

    planned = grid.make(settings)
    code = 0
    if not settings.table_only:
        # Before the data: reading them with TFDS starts TensorFlow, after
        # which devices cannot be set up any more.
        replicas = backend.make_strategy(
            settings.distribute, settings.replicas
        )[1]
        for cell in planned.cells:
            build.check_batch(cell.settings, replicas)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        code = runner.Runner(planned).run()
    for line in report.finish(planned):
        print(line)
    return code


if __name__ == "__main__":
    sys.exit(cli.run(compare_flags.COMMAND, main))
