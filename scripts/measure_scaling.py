"""Measures how the pseudo-label tables scale with the number of examples.

    python scripts/measure_scaling.py --examples 10000 100000 1000000

For every N and both tables: the refresh of one batch in a compiled step, and
what an epoch's end costs: forgetting the ratios, lambda, and the settled
label of every example. Milliseconds, median of several, fastest and slowest
in brackets. The tables of one N take turns, in one process.
"""

import argparse
import gc
import statistics
import time

import keras
import numpy as np

from alim_keras.layers import PseudoLabelTable
from alim_keras.layers import SparsePseudoLabelTable

TABLES = {
    "dense, exact": lambda n, c, m: PseudoLabelTable(n, c),
    "dense, histogram": lambda n, c, m: PseudoLabelTable(
        n, c, quantile="histogram"
    ),
    "sparse, histogram": SparsePseudoLabelTable,
    "sparse float16, histogram": lambda n, c, m: SparsePseudoLabelTable(
        n, c, m, table_dtype="float16"
    ),
}


def compiled_refresh(table):
    """Returns a function that refreshes rows in a compiled step, and waits."""
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        step = tf.function(table.refresh, autograph=False)
        return lambda *batch: step(*batch).numpy()
    import jax

    variables = table.variables

    def run_step(values, batch):
        mapping = list(zip(variables, values))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            rows = table.refresh(*batch)
        return rows, [scope.get_current_value(v) for v in variables]

    step = jax.jit(run_step, donate_argnums=0)

    def run(*batch):
        rows, values = step([v.value for v in variables], batch)
        for variable, value in zip(variables, values):
            variable.assign(value)
        jax.block_until_ready(rows)

    return run


def batches(count, examples, classes, size, set_size, seed=0):
    """Random batches: index, probabilities, sets of 1 to `set_size`."""
    stream = np.random.default_rng(seed)
    for _ in range(count):
        index = stream.choice(examples, size, replace=False).astype("int32")
        p = stream.dirichlet(np.full(classes, 0.05), size).astype("float32")
        s = np.zeros((size, classes), "float32")
        for row in s:
            row[stream.choice(classes, stream.integers(1, set_size + 1))] = 1
        yield tuple(map(keras.ops.convert_to_tensor, (index, p, s)))


def timed(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return 1e3 * (time.perf_counter() - start)


def text(times):
    middle = statistics.median(times)
    return f"{middle:.2f} [{min(times):.2f}, {max(times):.2f}]"


def measure(kinds, examples, arguments):
    """Prints a row for each kind of table over `examples` rows."""
    tables = {
        name: TABLES[name](examples, arguments.classes, arguments.set_size)
        for name in kinds
    }
    work = list(
        batches(
            arguments.batches,
            examples,
            arguments.classes,
            arguments.batch,
            arguments.set_size,
        )
    )
    steps = {name: compiled_refresh(t) for name, t in tables.items()}
    found = {name: {} for name in tables}
    stream = np.random.default_rng(1)
    ratios = stream.lognormal(size=examples).astype("float32")
    for number, batch in enumerate([work[0], work[0], *work]):
        for name, table in tables.items():
            table.momentum.assign(0.9)
            taken = timed(steps[name], *batch)
            if number > 1:  # The first two compile and warm up.
                found[name].setdefault("refresh", []).append(taken)
    for number in range(arguments.epochs + 1):
        for name, table in tables.items():
            table.assign_ratios(ratios)
            for part, function in (
                ("lambda", lambda: table.adaptive_lambda(0.3)),
                ("settled", table.settled),
                ("forget", table.forget_ratios),
            ):
                taken = timed(function)
                if number:
                    found[name].setdefault(part, []).append(taken)
    for name, table in tables.items():
        size = sum(
            np.dtype(v.dtype).itemsize * np.prod(v.shape) for v in table.weights
        )
        parts = ("refresh", "lambda", "settled", "forget")
        cells = [text(found[name][part]) for part in parts]
        print(f"| {examples:,} | {name} | {size / 2**20:.1f} | ", end="")
        print(" | ".join(cells), "|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--examples", nargs="+", type=int, default=[10_000, 100_000]
    )
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--set_size", type=int, default=24)
    parser.add_argument("--batches", type=int, default=15)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    arguments = parser.parse_args()
    print(
        "| N | table | MiB | refresh of a batch, ms | lambda, ms | settled "
        "labels, ms | forget, ms |\n|---|---|---|---|---|---|---|"
    )
    for examples in arguments.examples:
        measure(arguments.tables, examples, arguments)
        gc.collect()


if __name__ == "__main__":
    main()
