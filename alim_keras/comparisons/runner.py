"""Runs the cells of a grid, and writes the tables after each."""

import time

from alim_keras.callbacks.progress import duration
from alim_keras.comparisons import cells
from alim_keras.comparisons import report
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.runs.folder import BusyError

# Errors that are about the wish and not about one training: where the first
# cell ends with one, so would the others.
_HOPELESS = (ConfigError, DataError, CheckpointError, EnvironmentLacksError)
# Seconds between looks at cells that another process trains.
POLL = 5.0


class Runner:
    """Works through a grid.

    Args:
        grid: The `Grid`.
        say: Function that prints a line. Defaults to `print`.

    Attributes:
        failed: List of pairs (cell, exit code) of this process.
    """

    def __init__(self, grid, say=print):
        self.grid = grid
        self.say = say
        self.failed = []
        self._began = time.time()
        self._done = {c.name for c in grid.cells if cells.is_finished(c)}
        self._old = len(self._done)
        self._trained = 0
        self._seconds = {}

    def run(self):
        """Trains what is not finished; returns the exit code."""
        report.write(self.grid)
        pending = [c for c in self.grid.cells if not cells.is_finished(c)]
        self.say(
            f"{len(self.grid.cells)} cells, {self._old} of them finished, in "
            f"{self.grid.out}"
        )
        waiting = False
        while pending:
            busy = [cell for cell in pending if not self._settle(cell)]
            if len(busy) == len(pending):
                if not waiting:
                    self.say(
                        f"The last {len(busy)} are being trained by another "
                        "process; waiting for it."
                    )
                waiting = True
                time.sleep(POLL)
            pending = busy
        report.write(self.grid)
        return self.failed[0][1] if self.failed else 0

    def _settle(self, cell):
        """Trains a cell if nobody else does; returns whether it is settled."""
        if cells.is_finished(cell) or cells.failure(cell, self._began):
            return True
        began = time.monotonic()
        try:
            cells.run(cell)
        except BusyError:
            return False
        except Exception as error:
            if not self._trained and isinstance(error, _HOPELESS):
                raise
            self._fail(cell, error)
            return True
        self._trained += 1
        seconds = time.monotonic() - began
        self._seconds.setdefault(cell.row.name, []).append(seconds)
        results = report.write(self.grid)[cell.name]
        self._line(cell, f"test {_percent(results['test_accuracy'])}", seconds)
        return True

    def _fail(self, cell, error):
        code, line = cells.note_failure(cell, error)
        self.failed.append((cell, code))
        report.write(self.grid)
        self._line(cell, line)

    def _line(self, cell, text, seconds=None):
        done = sum(cells.is_finished(c) for c in self.grid.cells)
        if seconds is not None:
            text += f", {seconds:.0f} s"
        total = len(self.grid.cells)
        left = self._left()
        if left is not None:
            text += f", {duration(left)} left"
        self.say(f"[{done}/{total}] {cell.name}: {text}")

    def _left(self):
        """Returns the seconds that the rest will take, or None.

        From what this row's cells took, and from the pace at which they were
        finished since the start, by however many processes.
        """
        known = [s for list_ in self._seconds.values() for s in list_]
        if not known:
            return None
        mean = sum(known) / len(known)
        gained = rest = 0.0
        for cell in self.grid.cells:
            mine = self._seconds.get(cell.row.name)
            cost = sum(mine) / len(mine) if mine else mean
            if not cells.is_finished(cell):
                failed = cells.failure(cell, self._began)
                rest += 0.0 if failed else cost
            elif cell.name not in self._done:
                gained += cost
        return rest * (time.time() - self._began) / max(gained, 1e-9)


def _percent(share):
    return "unknown" if share is None else f"{share:.1%}"
