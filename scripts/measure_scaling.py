"""Measures how the pseudo-label tables scale with the number of examples.

    python scripts/measure_scaling.py --examples 10000 100000 1000000

For every N and each table, on TensorFlow: the refresh of one batch in a
compiled step, and what an epoch's end costs: lambda, the settled label of
every example, and forgetting the ratios. Milliseconds, median of several,
fastest and slowest in brackets. The tables of one N take turns.
"""

import argparse
import gc
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

from alim_keras import ops
from alim_keras.layers import PseudoLabelTable
from alim_keras.layers import SparsePseudoLabelTable

TABLES = {
    "dense": lambda n, c, m: PseudoLabelTable(n, c),
    "sparse": SparsePseudoLabelTable,
}
PARTS = ("refresh", "lambda", "settled", "forget")


def batches(count, examples, classes, size, set_size):
    """Yields random batches: index, probabilities, sets of few classes."""
    stream = np.random.default_rng(0)
    for _ in range(count):
        index = stream.choice(examples, size, replace=False).astype("int32")
        p = stream.dirichlet(np.full(classes, 0.05), size).astype("float32")
        s = np.zeros((size, classes), "float32")
        for row in s:
            row[stream.choice(classes, stream.integers(1, set_size + 1))] = 1
        yield tuple(map(keras.ops.convert_to_tensor, (index, p, s)))


def measure(examples, arguments):
    """Prints a line for each kind of table over `examples` rows."""
    sizes = (examples, arguments.classes, arguments.set_size)
    tables = {name: make(*sizes) for name, make in TABLES.items()}
    steps = {
        name: tf.function(table.refresh, autograph=False)
        for name, table in tables.items()
    }
    times = {name: {part: [] for part in PARTS} for name in tables}
    ratios = np.random.default_rng(1).lognormal(size=examples)
    for batch in batches(
        arguments.batches + 1, *sizes[:2], arguments.batch, sizes[2]
    ):
        for name, table in tables.items():
            for part, function in (
                ("refresh", lambda: steps[name](*batch).numpy()),
                ("lambda", lambda: ops.adaptive_lambda(ratios, 0.3)),
                ("settled", table.settled),
                ("forget", table.forget_ratios),
            ):
                table.candidate_ratio.assign(ratios)
                start = time.perf_counter()
                function()
                taken = 1e3 * (time.perf_counter() - start)
                times[name][part].append(taken)
    for name, table in tables.items():
        size = sum(variable.numpy().nbytes for variable in table.variables)
        texts = [f"{examples:,}", name, f"{size / 2**20:.1f}"]
        for part in PARTS:
            taken = times[name][part][1:]  # The first compiles.
            middle = statistics.median(taken)
            texts.append(f"{middle:.2f} [{min(taken):.2f}, {max(taken):.2f}]")
        print(f"| {' | '.join(texts)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--examples", nargs="+", type=int, default=[10_000, 100_000]
    )
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--set_size", type=int, default=24)
    parser.add_argument("--batches", type=int, default=5)
    arguments = parser.parse_args()
    print(f"| N | table | MiB | {', ms | '.join(PARTS)}, ms |")
    print("|" + "---|" * (3 + len(PARTS)))
    for examples in arguments.examples:
        measure(examples, arguments)
        gc.collect()


if __name__ == "__main__":
    main()
