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


def open_images(
    labels,
    test_ids,
    images,
    table,
    skip,
    notes,
    *,
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
    named = labels.images
    if named is not None and not isinstance(named[0], str):
        if len(test_ids):
            raise DataError(
                f"{table}: holds the images itself, and --test_labels names "
                "files; use a folder of files for both"
            )
        return named
    named = [*(labels.ids if named is None else named), *test_ids]
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
