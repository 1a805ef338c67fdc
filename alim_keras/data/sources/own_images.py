"""The image files that the items of a table and of a test mean."""

import dataclasses

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.sources.disk_images import DiskImages
from alim_keras.data.sources.image_headers import Scan
from alim_keras.data.sources.image_headers import scan
from alim_keras.data.sources.image_headers import unified_channels
from alim_keras.data.sources.image_headers import unified_size
from alim_keras.data.sources.listing import ImageListing
from alim_keras.data.sources.listing import list_images
from alim_keras.data.sources.listing import match_ids
from alim_keras.data.sources.listing import unused_images
from alim_keras.errors import DataError

# Decoded images of less than this are kept in memory, unless told otherwise.
_CACHED = 1 << 30


@dataclasses.dataclass(frozen=True, eq=False)
class Opened:
    """Images of the items and of the test that can be read.

    Attributes:
        images: `DiskImages` of the items.
        test_images: `DiskImages` of the test.
        kept: int64, which items these are.
        tested: int64, which items of the test these are.
        scan: The `Scan` of all files.
        files: The files: those of the items, then those of the test.
    """

    images: DiskImages
    test_images: DiskImages
    kept: np.ndarray
    tested: np.ndarray
    scan: Scan
    files: object


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

    Raises:
        DataError: An item of the test is not in the table, which alone could
            hold its image.
    """
    if not are_embedded(labels.images):
        return None
    if not len(test_ids):
        return labels.images
    rows = {one: row for row, one in enumerate(labels.ids.tolist())}
    unknown = [one for one in test_ids.tolist() if one not in rows]
    if unknown:
        raise DataError(
            f"{test_labels}: {len(unknown)} ids are not in {table}, which "
            f"holds the images itself: {first_five(unknown)}; name ids of the "
            f"table, such as {first_five(labels.ids)}"
        )
    tested = [rows[one] for one in test_ids.tolist()]
    kept = np.setdiff1d(np.arange(len(labels)), tested)
    return labels.images.select([*kept.tolist(), *tested])


def open_images(
    labels,
    test_ids,
    images,
    table,
    skip,
    notes,
    *,
    embedded,
    image_size,
    cache,
    verify,
    progress,
):
    """Finds the files, looks at them, and returns what can be read.

    Args:
        labels: The `Labels` of the table.
        test_ids: Strings, items to test on.
        images: An `ImageListing`, or the folder of the images.
        table: String, for messages.
        skip: Whether files that are missing or unreadable are left out, and
            not refused.
        notes: List of strings, to which is added what was found.
        embedded: What `embedded` returned.
        image_size: Side in pixels, or None for the images' own.
        cache: `"auto"`, `"none"`, `"memory"` or a path.
        verify: `"headers"` or `"full"`.
        progress: Function of (done, total), or None.

    Returns:
        An `Opened`.

    Raises:
        DataError: Files that are missing or unreadable.
    """
    is_listing = isinstance(images, ImageListing)
    folder = images.folder if is_listing else images
    files = embedded
    if files is None:
        files = _files(labels, test_ids, images, table, skip, notes)
    found = scan(files, verify=verify, progress=progress, folder=folder)
    good = _good(found, files, skip, notes)
    size = image_size or unified_size(found)
    everything = DiskImages(
        files,
        size,
        unified_channels(found),
        folder=folder,
        cache=_cache(cache, len(files), size),
    )
    count = len(labels)
    kept, tested = good[good < count], good[good >= count]
    if not len(kept):
        raise DataError(f"{table}: no item has an image that can be read")
    return Opened(
        everything[kept],
        everything[tested],
        kept,
        tested - count,
        found,
        files,
    )


def _files(labels, test_ids, images, table, keep_missing, notes):
    """Returns the files of the items and of the test, in this order."""
    named = labels.ids if labels.images is None else labels.images
    named = [*named, *test_ids]
    listing = images if isinstance(images, ImageListing) else None
    listing = listing or list_images(images)
    files, rule = match_ids(named, listing, table, keep_missing)
    notes.append(f"{len(files)} images in {listing.folder}: {rule}")
    count, first = unused_images(files, listing)
    if count:
        notes.append(
            f"{count} images there are in no row of {table}: "
            f"{first_five(first)}"
        )
    return files


def _good(found, files, skip, notes):
    """Returns the rows whose image can be used."""
    if not found.problems:
        return np.arange(len(files))
    bad = list(found.problems)
    shown = first_five([f"{files[n]} ({found.problems[n]})" for n in bad[:6]])
    if not skip:
        raise DataError(
            f"{len(bad)} of {len(files)} images cannot be read: {shown}; mend "
            "them, or leave their items out with --on_bad_image=skip"
        )
    notes.append(
        f"{len(bad)} images cannot be read, their items are left out: {shown}"
    )
    return np.setdiff1d(np.arange(len(files)), bad)


def _cache(wanted, count, size):
    if wanted == "auto":
        return "memory" if 3 * count * size * size < _CACHED else None
    return None if wanted == "none" else wanted
