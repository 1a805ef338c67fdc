"""The image files that the items of a table and of a test mean."""

import dataclasses

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.sources.disk_images import DiskImages
from alim_keras.data.sources.image_data import channel_statistics
from alim_keras.data.sources.image_data import sample_places
from alim_keras.data.sources.image_headers import Scan
from alim_keras.data.sources.image_headers import scan
from alim_keras.data.sources.image_headers import unified_channels
from alim_keras.data.sources.image_headers import unified_size
from alim_keras.errors import DataError

# Decoded images of less than this are kept in memory, unless told otherwise.
_CACHED = 1 << 30
# Of an image that fails while training: the look at the heads passed it.
_REMEDY = (
    "--verify=full finds all such images, and --on_bad_image=skip with it "
    "leaves their items out"
)


@dataclasses.dataclass(frozen=True, eq=False)
class Opened:
    """Images of the items and of the test that can be read.

    Attributes:
        images: `DiskImages` of the items.
        test_images: `DiskImages` of the test.
        kept: int64, which items these are.
        tested: int64, which items of the test these are.
        scan: The `Scan` of all files.
        mean: Tuple of floats, one per channel of the items' images.
        std: Tuple of floats.
    """

    images: DiskImages
    test_images: DiskImages
    kept: np.ndarray
    tested: np.ndarray
    scan: Scan
    mean: tuple
    std: tuple


def are_embedded(images):
    """Returns whether the images of a `Labels` are encoded, in the table."""
    return hasattr(images, "select")


def embedded(labels, test_ids, table, test_labels):
    """Returns the encoded images that a table itself holds, or None.

    Args:
        labels: The `Labels` of the table, those tested on among them.
        test_ids: Strings, items to test on.
        table: String, for messages.
        test_labels: String, the file of these, for messages.

    Returns:
        Those of the items that are not tested on, then those of the test.
    """
    if not are_embedded(labels.images):
        return None
    if not len(test_ids):
        return labels.images
    tested = tested_rows(labels, test_ids, table, test_labels)
    kept = np.setdiff1d(np.arange(len(labels)), tested)
    return labels.images.select([*kept.tolist(), *tested.tolist()])


def tested_rows(labels, test_ids, table, test_labels):
    """Returns where a table holds the items to test on, int64 `(n,)`.

    Args:
        labels: The `Labels` of a table that holds images or features.
        test_ids: Strings, items to test on.
        table: String, for messages.
        test_labels: String, the file of these, for messages.

    Raises:
        DataError: An item is not in the table, which alone could hold its
            image or its features.
    """
    rows = {one: row for row, one in enumerate(labels.ids.tolist())}
    unknown = [one for one in test_ids.tolist() if one not in rows]
    if unknown:
        what = "images" if labels.features is None else "features"
        raise DataError(
            f"{test_labels}: {len(unknown)} ids are not in {table}, which "
            f"holds the {what} itself: {first_five(unknown)}; name ids of the "
            f"table, such as {first_five(labels.ids)}"
        )
    return np.array([rows[one] for one in test_ids.tolist()], np.int64)


class UnreadableError(DataError):
    """No image can be read; `problems` lists (file, reason) of each."""

    def __init__(self, message, problems):
        super().__init__(message)
        self.problems = problems


def open_images(
    files,
    names,
    count,
    table,
    skip,
    notes,
    *,
    folder,
    missing,
    image_size,
    cache,
    verify,
    progress,
):
    """Looks at images, and returns those that can be read.

    A part of the items, up to 2,000, is decoded, for mean and deviation; what
    fails there is a problem like any other.

    Args:
        files: Paths, or encoded images: of the items, then of the test.
        names: Strings, what messages call these.
        count: Integer, how many are of items.
        table: String, for messages.
        skip: Whether files that are missing or unreadable are left out, and
            not refused.
        notes: List of strings, to which is added what was found.
        folder: Path that relative paths start from.
        missing: Rows that name no image of the folder.
        image_size: Side in pixels, or None for the images' own.
        cache: `"auto"`, `"none"`, `"memory"` or a path.
        verify: `"headers"` or `"full"`.
        progress: Function of (done, total), or None.

    Returns:
        An `Opened`.

    Raises:
        DataError: Files that are missing or unreadable.
    """
    found = scan(files, verify=verify, progress=progress, folder=folder)
    why = "it is not among the images of the folder"
    found = found.with_problems(dict.fromkeys(missing, why))
    size = image_size or unified_size(found)
    # Files that are not there have no place in a cache.
    opened = np.setdiff1d(np.arange(len(files)), list(found.problems))
    everything = DiskImages(
        _part_of(files, opened),
        size,
        unified_channels(found),
        folder=folder,
        cache=_cache(cache, len(opened), size),
        remedy=_REMEDY,
    )
    num_items = np.sum(opened < count)
    sample = sample_places(num_items)
    failed = {}
    pixels = everything.read(sample, failed)
    damaged = {int(opened[sample[row]]): why for row, why in failed.items()}
    found = found.with_problems(damaged)
    good = _good(found, names, skip, notes)
    if damaged and num_items > len(sample):
        notes.append(
            f"{len(damaged)} of {len(sample)} images that were decoded are "
            f"damaged, of {num_items}; --verify=full finds all such"
        )
    if failed:
        pixels = np.delete(pixels, list(failed), axis=0)
    if not len(pixels):
        shown = first_five(_shown(found, names))
        raise UnreadableError(
            f"{table}: no item has an image that can be read: {shown}; mend "
            "them, or name another folder with --images",
            [(names[row], why) for row, why in found.problems.items()],
        )
    mean, std = channel_statistics(pixels)
    notes += _twins(found, names, count)
    kept, tested = good[good < count], good[good >= count]
    return Opened(
        everything[np.searchsorted(opened, kept)],
        everything[np.searchsorted(opened, tested)],
        kept,
        tested - count,
        found,
        mean,
        std,
    )


def _twins(found, names, count):
    """Says which images of the test are those of an item, by another name."""
    both = [
        group for group in found.identical if group.min() < count <= group.max()
    ]
    if not both:
        return []
    shown = [f"{names[one[-1]]} ({names[one[0]]})" for one in both[:6]]
    number = sum(int(np.sum(group >= count)) for group in both)
    return [
        f"{number} images are tested on that show the same as one that is "
        f"trained on: {first_five(shown)}; leave one of them out"
    ]


def _part_of(files, rows):
    if len(rows) == len(files):
        return files
    if are_embedded(files):
        return files.select(rows.tolist())
    return [files[row] for row in rows]


def _shown(found, names):
    return [f"{names[n]} ({why})" for n, why in [*found.problems.items()][:6]]


def _good(found, names, skip, notes):
    """Returns the rows whose image can be used."""
    rows = np.arange(len(names))
    if not found.problems:
        return rows
    count, shown = len(found.problems), first_five(_shown(found, names))
    if not skip:
        raise DataError(
            f"{count} of {len(names)} images cannot be read: {shown}; mend "
            "them, or leave their items out with --on_bad_image=skip"
        )
    # A check says so even where training would refuse them.
    notes.append(
        f"{count} images cannot be read: {shown}; --on_bad_image=skip leaves "
        "their items out"
    )
    return np.setdiff1d(rows, list(found.problems))


def _cache(wanted, count, size):
    if wanted == "auto":
        return "memory" if 3 * count * size * size < _CACHED else None
    return None if wanted == "none" else wanted
