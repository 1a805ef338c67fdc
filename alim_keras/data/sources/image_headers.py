"""Looking at many image files: their sizes, which are bad, which are equal."""

import contextlib
import dataclasses
import os
import time

import numpy as np

from alim_keras.data.sources import header_pool
from alim_keras.data.sources import header_worker
from alim_keras.data.sources import resize
from alim_keras.data.sources.disk_images import num_workers
from alim_keras.errors import ConfigError

# Fewer files are looked at here, in threads: starting processes takes longer.
_FEW = 2000
# Contents are compared where reading them is no more than this many bytes.
_COMPARED = 1 << 30
# Seconds between two calls of `progress`.
_EVERY = 0.25
# The common side where images differ.
_USUAL_SIZE = 224


@dataclasses.dataclass(frozen=True, eq=False)
class Scan:
    """What is known of N image files without, or after, decoding them.

    Attributes:
        width: int32 `(N,)`, in pixels, as shown; 0 where it is not known.
        height: int32 `(N,)`.
        channels: int8 `(N,)`, 1 for grey images, 3 for others, 0 unknown.
        bytes: int64 `(N,)`, sizes of the files.
        problems: Dict from a row to why its image cannot be read.
        identical: List of int64 arrays: rows whose files are the same, by
            links or, if `compared`, by their contents.
        compared: Whether contents were compared. With `verify="full"` they
            are; else where all files that share their size with another one
            come to no more than 1 GiB.
        num_files: How many different files were opened.
    """

    width: np.ndarray
    height: np.ndarray
    channels: np.ndarray
    bytes: np.ndarray
    problems: dict
    identical: list
    compared: bool
    num_files: int

    def __len__(self):
        return len(self.width)

    def with_problems(self, more):
        """Returns the scan with further rows that cannot be read.

        Args:
            more: Dict from a row to why; what is known of a row stays.
        """
        if not more:
            return self
        rows = list(more)
        known = {}
        for name in ("width", "height", "channels"):
            known[name] = getattr(self, name).copy()
            known[name][rows] = 0
        problems = dict(sorted({**more, **self.problems}.items()))
        same = [one[~np.isin(one, rows)] for one in self.identical]
        same = [one for one in same if len(one) > 1]
        return dataclasses.replace(
            self, problems=problems, identical=same, **known
        )


def scan(files, verify="headers", progress=None, workers=None, folder=None):
    """Looks at image files; one that is listed often is opened once.

    Args:
        files: Sequence of N paths, or of encoded images (`bytes`).
        verify: `"headers"`, or `"full"` to decode every image.
        progress: Function of (done, total), called a few times a second from
            this thread. Defaults to None.
        workers: Integer, processes to use. Defaults to the CPUs that this
            process may use. Few files are looked at without any.
        folder: Path that relative paths start from. Defaults to the current
            folder.

    Returns:
        A `Scan`.

    Raises:
        ConfigError: Another `verify`.
        EnvironmentLacksError: Pillow is not installed.

    Example:

    >>> scan(["cat.jpg", "notes.txt"]).problems
    {1: 'it is not an image of a known format'}
    """
    if verify not in ("headers", "full"):
        raise ConfigError(
            "Unknown `verify`, expected headers or full. Received: "
            f"verify={verify!r}"
        )
    resize.pillow()
    header_worker.hush()
    count = len(files)
    report = _Report(progress, count)
    encoded = count > 0 and not isinstance(files[0], str | os.PathLike)
    if encoded:
        sizes = np.empty(count, np.int64)
        sources, owner, missing = files, np.arange(count), {}
    else:
        # Seconds for a million; most of the time is spent on the images.
        sizes, sources, owner, missing = _look_up(files, folder, report)
    counts = np.bincount(owner[owner >= 0], minlength=len(sources))
    full = verify == "full"
    own_sizes = None if encoded else _first(sizes, owner, len(sources))
    hashed, compared = _to_compare(own_sizes, len(sources), full)
    workers = num_workers() if workers is None else max(1, int(workers))
    is_small = encoded or len(sources) < _FEW
    look = header_pool.by_threads if is_small else header_pool.by_processes
    table = np.zeros((len(sources) + 1, 3), np.int32)
    same = np.arange(len(sources))
    reasons, digests = {}, {}
    answers = look(sources, hashed, full, workers, report.tick)
    with contextlib.closing(answers):
        for start, records in answers:
            for place, record in enumerate(records, start):
                table[place] = record[:3]
                if record.reason:
                    reasons[place] = record.reason
                if record.digest != header_worker.NO_DIGEST:
                    same[place] = digests.setdefault(record.digest, place)
                if encoded:
                    sizes[place] = record.size
            report.add(int(counts[start : start + len(records)].sum()))
    report.end()
    problems = dict(missing)
    if reasons:
        is_bad = np.zeros(len(sources) + 1, bool)
        is_bad[list(reasons)] = True
        for row in np.flatnonzero(is_bad[owner]):
            problems[int(row)] = reasons[int(owner[row])]
    # Files that were not found have the owner -1: the last row, zeros.
    table = table[owner]
    return Scan(
        width=table[:, 0],
        height=table[:, 1],
        channels=table[:, 2].astype(np.int8),
        bytes=sizes,
        problems=dict(sorted(problems.items())),
        identical=_groups(owner, same),
        compared=compared,
        num_files=len(sources),
    )


def unified_size(found):
    """Returns the side that images are to be brought to.

    Args:
        found: A `Scan`.

    Returns:
        Their own, where all that can be read are square and of one size;
        else 224.
    """
    good = found.width > 0
    sides = np.unique(np.stack([found.width[good], found.height[good]]))
    return int(sides[0]) if len(sides) == 1 else _USUAL_SIZE


def unified_channels(found):
    """Returns 1 if all images of a `Scan` that can be read are grey, else 3."""
    known = found.channels[found.width > 0]
    return 1 if len(known) and np.all(known == 1) else 3


class _Report:
    """Calls `progress` now and then."""

    def __init__(self, progress, total):
        self._progress, self._total = progress, total
        self._done, self._next = 0, 0.0

    def add(self, count):
        self._done += count
        self.tick()

    def tick(self):
        now = time.monotonic()
        if self._progress is not None and now >= self._next:
            self._next = now + _EVERY
            self._progress(self._done, self._total)

    def end(self):
        if self._progress is not None:
            self._progress(self._total, self._total)


def _look_up(files, folder, report):
    """Finds which paths are the same file.

    Returns:
        Sizes int64 `(N,)`; the paths of the M different files; which
        of them each row is, int64 `(N,)`, -1 for none; and a dict from these
        rows to why.
    """
    sizes = np.zeros(len(files), np.int64)
    owner = np.full(len(files), -1, np.int64)
    missing, known, sources = {}, {}, []
    # os.path.join would take as long as the look itself.
    start = "" if folder is None else os.path.join(os.fspath(folder), "")
    for row, name in enumerate(files):
        name = os.fspath(name)
        path = name if os.path.isabs(name) else start + name
        try:
            found = os.stat(path)
        except (OSError, ValueError) as error:
            missing[row] = header_worker.explain(error)
            continue
        sizes[row] = found.st_size
        place = known.setdefault((found.st_dev, found.st_ino), len(sources))
        if place == len(sources):
            sources.append(path)
        owner[row] = place
        if row % 10000 == 0:
            report.tick()
    report.add(len(missing))
    return sizes, sources, owner, missing


def _first(sizes, owner, count):
    """Returns the sizes of the different files."""
    found = np.zeros(count, np.int64)
    rows = np.flatnonzero(owner >= 0)
    found[owner[rows]] = sizes[rows]
    return found


def _to_compare(sizes, count, full):
    """Returns whose contents are to be hashed, bool `(M,)`, and if any are."""
    if full or sizes is None:
        return np.ones(count, bool), True
    _, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    shared = (counts[place] > 1) & (sizes > 0)
    affordable = bool(sizes[shared].sum() <= _COMPARED)
    return shared & affordable, affordable


def _groups(owner, same):
    """Returns the rows that are the same file, or files of equal contents.

    Args:
        owner: int64 `(N,)`, each row's file, -1 for none.
        same: int64 `(M,)`, the first file of the same contents.
    """
    rows = np.flatnonzero(owner >= 0)
    of_row = same[owner[rows]]
    order = np.argsort(of_row, kind="stable")
    cuts = np.flatnonzero(np.diff(of_row[order])) + 1
    groups = np.split(rows[order], cuts)
    return [one for one in groups if len(one) > 1]
