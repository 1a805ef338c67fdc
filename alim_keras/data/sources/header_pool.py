"""Looking at image files in threads, or in processes of their own."""

import collections
import concurrent.futures
import contextlib
import subprocess
import sys
import threading

from alim_keras.data.sources import header_worker
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

# Files that are asked for at once.
_AT_ONCE = 256
# Seconds after which a waiting caller is woken.
_WAKE = 0.2


def by_threads(sources, hashed, full, workers, tick):
    """Yields (start, records): the first one's place, and some in a row.

    Args:
        sources: Sequence of paths or of encoded images.
        hashed: bool `(M,)`, whose contents are wanted as a digest.
        full: Whether pixels are decoded.
        workers: Integer, how many at once.
        tick: Function, called a few times a second.
    """

    def look(place):
        try:
            source = sources[place]
        except DataError as error:
            # A row of a dataset may lack its image.
            return header_worker.Record(reason=str(error))
        return header_worker.describe(source, full, bool(hashed[place]))

    def act(start, stop):
        return list(map(look, range(start, stop)))

    yield from _in_parallel(act, len(sources), workers, tick)


def by_processes(sources, hashed, full, workers, tick):
    """As `by_threads`, of paths; decoding there does not hold this process."""
    crew = _Crew()
    idle = []

    def act(start, stop):
        worker = idle.pop()
        try:
            records = []
            part = slice(start, stop)
            while len(records) < stop - start:
                part = slice(start + len(records), stop)
                found = worker.ask(sources[part], full, hashed[part])
                records.extend(found)
                if len(found) < stop - part.start:
                    # It died of the next file.
                    reason = "decoding it ends the process"
                    records.append(header_worker.Record(reason=reason))
                    worker = _Worker(crew)
            return records
        finally:
            idle.append(worker)

    try:
        idle.extend(_Worker(crew) for _ in range(workers))
        yield from _in_parallel(act, len(sources), workers, tick, crew.kill)
    finally:
        crew.kill()
        crew.close()


def _in_parallel(act, count, workers, tick, stop=None):
    """Yields (start, `act(start, stop)`) of parts of a range, in order.

    `stop` is called at the end, before what still runs is waited for.
    """
    todo = iter(range(0, count, _AT_ONCE))
    waiting = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                # A few ahead, so that sources are fetched as they are needed.
                while len(waiting) < 4 * workers:
                    start = next(todo, None)
                    if start is None:
                        break
                    end = min(start + _AT_ONCE, count)
                    waiting.append((start, pool.submit(act, start, end)))
                if not waiting:
                    return
                start, first = waiting[0]
                try:
                    records = first.result(_WAKE)
                except TimeoutError:
                    tick()
                    continue
                waiting.popleft()
                yield start, records
        finally:
            for _, one in waiting:
                one.cancel()
            if stop is not None:
                stop()


class _Crew:
    """The processes that were started, to be ended together."""

    def __init__(self):
        self._lock = threading.Lock()
        self._started = []
        self._is_over = False

    def start(self):
        with self._lock:
            if self._is_over:
                raise concurrent.futures.CancelledError
            # -P: names beside the script must not stand before Python's own.
            # A session of its own: Ctrl-C is this process's matter.
            process = subprocess.Popen(
                [sys.executable, "-P", header_worker.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._started.append(process)
            return process

    def kill(self):
        with self._lock:
            self._is_over = True
            for process in self._started:
                process.kill()

    def close(self):
        for process in self._started:
            process.wait()
            process.stdout.close()
            with contextlib.suppress(OSError):
                process.stdin.close()


class _Worker:
    """One process, which answers one request after another."""

    def __init__(self, crew):
        self._process = crew.start()
        if self._process.stdout.read(1) != header_worker.READY:
            raise EnvironmentLacksError(
                f"{sys.executable} could not be started with Pillow to look "
                "at images: python -m pip install Pillow"
            )

    def ask(self, paths, full, hashed):
        """Returns the records of paths; fewer if the process died."""
        found = []
        try:
            self._process.stdin.write(header_worker.frame(paths, full, hashed))
            self._process.stdin.flush()
            for _ in paths:
                found.append(header_worker.read_record(self._process.stdout))
        except (EOFError, BrokenPipeError, ValueError):
            pass
        return found
