"""Which files the ids of a table, of a test and of true labels mean."""

import dataclasses
import os

import numpy as np

from alim_keras.data.known_labels import annotated_ids
from alim_keras.data.known_labels import match_annotations
from alim_keras.data.messages import first_five
from alim_keras.data.sources.image_data import UNKNOWN
from alim_keras.data.sources.listing import ImageListing
from alim_keras.data.sources.listing import list_images
from alim_keras.data.sources.listing import match_ids
from alim_keras.data.sources.listing import unused_images
from alim_keras.errors import DataError

# The row of an item that a policy left out.
LEFT_OUT = -1


@dataclasses.dataclass(frozen=True)
class Resolved:
    """The files of items and of those tested on.

    Attributes:
        files: List of strings, a file for each item; None where the table
            holds the images, or features, itself.
        tested: List of strings, a file for each item of the test.
        kept: int64, the items that are not tested on.
        notes: List of strings: by which rules, and what no row names.
    """

    files: list | None
    tested: list
    kept: np.ndarray
    notes: list


class ItemFiles:
    """Finds files among the images of a folder, which is listed once.

    Args:
        images: An `ImageListing`, or the folder.
        table: String, for messages.
        keep_missing: Whether items without a file are left for the look at
            the images to report.
    """

    def __init__(self, images, table, keep_missing=False):
        self._images = images
        self.table = table
        self._keep_missing = keep_missing

    @property
    def folder(self):
        """The folder of the images."""
        is_listing = isinstance(self._images, ImageListing)
        return self._images.folder if is_listing else os.fspath(self._images)

    @property
    def listing(self):
        """The `ImageListing` of the folder."""
        if not isinstance(self._images, ImageListing):
            self._images = list_images(self._images)
        return self._images

    def missing(self, files):
        """Returns the rows of files that are no images of the folder."""
        if not self._keep_missing:
            return []  # They were refused.
        known = set(self.listing.files)
        return [row for row, one in enumerate(files) if one not in known]

    def find(self, ids):
        """Returns a dict from ids to files; without those that mean none."""
        try:
            files, _ = match_ids(ids, self.listing, keep_missing=True)
        except DataError:
            return {}
        known = set(self.listing.files)
        pairs = zip(ids, files, strict=True)
        return {one: file for one, file in pairs if file in known}

    def match(self, ids, where=None):
        """Returns the files of ids and the rule, as `match_ids` does."""
        where = self.table if where is None else where
        return match_ids(ids, self.listing, where, self._keep_missing)


def are_named(images):
    """Returns whether files are named: by paths, or (None) by the ids."""
    return images is None or isinstance(images, list)


def resolve(labels, test_ids, item_files, test_labels):
    """Finds the files of items and of tests, and which items are not tested.

    An item is tested on if it has the id, or the file, of one of the test:
    ids may be written in another way there.

    Args:
        labels: The `Labels` of the table.
        test_ids: Strings, items to test on.
        item_files: An `ItemFiles`.
        test_labels: String, the file of the tests, for messages.

    Returns:
        A `Resolved`.

    Raises:
        DataError: Ids without a file of their own.
    """
    is_tested = np.isin(labels.ids, test_ids)
    if not are_named(labels.images) or labels.features is not None:
        return Resolved(None, [], np.flatnonzero(~is_tested), [])
    named = labels.ids if labels.images is None else labels.images
    files, rule = item_files.match(named)
    tested, more = [], rule
    if len(test_ids) and labels.images is not None:
        # What the table calls the items comes before what the files are.
        rows = {one: row for row, one in enumerate(labels.ids.tolist())}
        tested = [rows.get(one) for one in test_ids.tolist()]
        tested = [] if None in tested else [files[row] for row in tested]
    if len(test_ids) and not tested:
        tested, more = item_files.match(test_ids, test_labels)
        if labels.images is not None:
            is_tested[:] = False
    if tested:
        left = set(tested)
        is_tested |= np.array([one in left for one in files], bool)
    notes = [
        f"{len(files) + len(tested) - is_tested.sum()} images in "
        f"{item_files.folder}: {rule}"
    ]
    if more != rule:
        notes.append(f"in {test_labels} {more}")
    count, first = unused_images([*files, *tested], item_files.listing)
    if count:
        notes.append(
            f"{count} images there are in no row of {item_files.table}: "
            f"{first_five(first)}"
        )
    return Resolved(files, tested, np.flatnonzero(~is_tested), notes)


def find_items(wanted, ids, images, left_out, item_files):
    """Finds the items that further ids mean, by id or else by file.

    Args:
        wanted: List of strings.
        ids: Strings `(N,)`, of the items.
        images: As `Labels.images` of these; anything else where there are no
            files.
        left_out: Strings, ids of items that were left out.
        item_files: An `ItemFiles`.

    Returns:
        A dict from an id to its row, or to `LEFT_OUT`; without unknown ones.
    """
    rows = {one: row for row, one in enumerate(np.asarray(ids, str).tolist())}
    gone = set(left_out)
    found = {}
    for one in wanted:
        if one in rows:
            found[one] = rows[one]
        elif one in gone:
            found[one] = LEFT_OUT
    rest = [one for one in wanted if one not in found]
    if not rest or not are_named(images):
        return found
    files = item_files.find(rest)
    if not files:
        return found
    places = {}
    if images is None:
        places = dict.fromkeys(item_files.find(list(gone)).values(), LEFT_OUT)
    # With a column of images, several items may have one: none is meant.
    several = set()
    for row, file in enumerate(item_files.match(images or list(rows))[0]):
        if places.get(file, LEFT_OUT) != LEFT_OUT:
            several.add(file)
        places[file] = row
    for one, file in files.items():
        if file in places and file not in several:
            found[one] = places[file]
    return found


def known_of(path, labels, item_files):
    """Reads a file of true labels of items.

    Args:
        path: The file, or None.
        labels: The `Labels` of the table.
        item_files: An `ItemFiles`.

    Returns:
        int64 `(N,)`, `UNKNOWN` where no label is given, or None without a
        file; and how many labels are lost as an empty set left out the item.
    """
    if path is None:
        return None, 0
    images = labels.images if labels.features is None else labels.features

    def find(wanted):
        return find_items(
            wanted, labels.ids, images, labels.left_out, item_files
        )

    names = labels.candidates.class_names
    rows, values = match_annotations(path, labels.ids, names, find)
    here = rows != LEFT_OUT
    known = np.full(len(labels.ids), UNKNOWN, np.int64)
    known[rows[here]] = values[here]
    return known, len(rows) - np.sum(here)


def answered_by(path, item_files):
    """Returns the function that says which items a file has a label of.

    It is what `read_labels` takes as `answered`.
    """

    def answered(ids, images):
        found = find_items(annotated_ids(path), ids, images, (), item_files)
        is_answered = np.zeros(len(ids), bool)
        is_answered[list(found.values())] = True
        return is_answered

    return answered
