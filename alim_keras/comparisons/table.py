"""Mean, deviation and paired differences of a grid's accuracies."""

import dataclasses
import math
import statistics

from alim_keras.comparisons import cells


@dataclasses.dataclass(frozen=True)
class Spread:
    """Numbers of one place in a table.

    Attributes:
        mean: Their mean, or None where there are none.
        deviation: The sample's standard deviation (n - 1), None for n < 2.
        count: n, one for each seed.
    """

    mean: float | None
    deviation: float | None
    count: int

    @property
    def error(self):
        """The standard error of the mean, None for n < 2."""
        if self.deviation is None:
            return None
        return self.deviation / math.sqrt(self.count)


def spread(values):
    """Returns the `Spread` of numbers.

    Example:

    >>> spread([0.5, 0.7]).mean
    0.6
    """
    values = list(values)
    if not values:
        return Spread(None, None, 0)
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), deviation, len(values))


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two rows that differ in one plug-in: `plus` has it, `base` has not."""

    plug_in: str
    base: object
    plus: object


class Table:
    """The accuracies of a grid's finished cells.

    Args:
        grid: The `Grid`.
        results: Dict from a cell's name to its dict of `cells.COLUMNS`.

    Attributes:
        rows: The grid's rows.
        columns: The grid's columns.
        seeds: The grid's seeds.
    """

    def __init__(self, grid, results):
        self.rows, self.columns, self.seeds = (
            grid.rows,
            grid.columns,
            grid.seeds,
        )
        self._values, self._seconds, self._mixup = {}, {}, {}
        for cell in grid.cells:
            found = results[cell.name]
            self._mixup[cell.row] = found["mixup"]
            if found["status"] != cells.FINISHED:
                continue
            seconds = self._seconds.setdefault(cell.row, [])
            seconds.append(found["seconds_per_epoch"])
            if found["test_accuracy"] is not None:
                place = self._values.setdefault((cell.row, cell.column), {})
                place[cell.seed] = found["test_accuracy"]

    def values(self, row, column):
        """Returns a dict from seed to accuracy, of finished cells."""
        return self._values.get((row, column), {})

    def spread(self, row, column):
        """Returns the `Spread` of the accuracies in one place."""
        return spread(self.values(row, column).values())

    def difference(self, pair, column):
        """Returns the `Spread` of plus - base over the seeds of both."""
        plus, base = (self.values(r, column) for r in (pair.plus, pair.base))
        return spread(plus[s] - base[s] for s in plus if s in base)

    def seconds_per_epoch(self, row):
        """Returns the median over the row's finished cells, or None."""
        found = self._seconds.get(row)
        return statistics.median(found) if found else None

    def pairs(self):
        """Returns the pairs of rows that one plug-in tells apart."""
        found = []
        for plus in self.rows:
            base = self._alim_base(plus)
            if base is not None:
                found.append(Pair("alim", base, plus))
        for plus in self.rows:
            for base in self.rows:
                same = (plus.method, plus.alim, plus.options) == (
                    base.method,
                    base.alim,
                    base.options,
                )
                if same and self._mixup[plus] and not self._mixup[base]:
                    found.append(Pair("mixup", base, plus))
        return found

    def _alim_base(self, plus):
        if not plus.alim:
            return None
        bases = [row for row in self.rows if row == plus.base()]
        return bases[0] if bases else None
