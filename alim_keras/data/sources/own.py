"""Labels and images of one's own: a table beside a folder, or feature vectors.

`load_own` puts together what the table says, the files that its items name
and what is known of the truth.
"""

import dataclasses
import os

import numpy as np

from alim_keras.data import tables
from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.data.known_labels import read_test_labels
from alim_keras.data.messages import first_five
from alim_keras.data.sources import own_files
from alim_keras.data.sources import own_images
from alim_keras.data.sources.image_data import UNKNOWN
from alim_keras.data.sources.image_data import ImageData
from alim_keras.data.sources.listing import list_images
from alim_keras.data.tables import huggingface
from alim_keras.data.tables.class_names import is_one_line
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError


@dataclasses.dataclass(frozen=True, eq=False)
class OwnData:
    """What was found of one's own labels and images.

    Args:
        data: The `ImageData`.
        candidates: Its `CandidateSets`, in the same order.
        given: The sets as the table gives them: they differ from
            `candidates` where true labels were put in place of sets.
        votes: `Votes`, who said what; None where the table does not say.
        known: int64 `(N,)`, the labels of `known_labels`, -1 elsewhere; None
            without such a file. `data.labels` may know more.
        notes: Tuple of strings, a line each: what was found and done.
        scan: The `Scan` of the image files, or None.
        files: Strings, what it is about: the files of the items, then of the
            tested; ids where the table holds the images.
    """

    data: ImageData
    candidates: CandidateSets
    given: CandidateSets
    votes: tables.Votes | None
    known: np.ndarray | None
    notes: tuple
    scan: object = None
    files: object = None

    def rows_of(self, ids):
        """Returns the rows of some items, int64 `(n,)`."""
        if np.array_equal(self.data.ids, ids):
            return np.arange(len(ids))
        places = {one: row for row, one in enumerate(self.data.ids)}
        return np.array([places[one] for one in ids], np.int64)


def load_own(
    table,
    images=None,
    *,
    image_size=None,
    known_labels=None,
    known_as_sets=False,
    test_labels=None,
    on_bad_image="error",
    verify="headers",
    image_cache="auto",
    progress=None,
    **reading,
):
    """Loads labels of one's own and the images that they are about.

    Args:
        table: Path of a table, see `tables.read_labels`; or a folder with a
            folder of images for each class, whose names are then sets of one.
        images: Folder of the images. Defaults to the table's own.
        image_size: Side in pixels to which images are brought. Defaults to
            their own, if all are square and of one size, and else to 224.
        known_labels: CSV file with `id` and `label`: true labels of some of
            the items. They are for reports, and for the noise rate.
        known_as_sets: Whether these stand in place of the items' sets, which
            may then be empty.
        test_labels: CSV file with `id` and `label`: items to test on, which
            are not trained on. Of a table that holds images or features
            itself (arrays, a HuggingFace dataset) they are items of the table.
        on_bad_image: `"error"`, or `"skip"` to leave out items whose file is
            missing or unreadable.
        verify: `"headers"`, or `"full"` to decode every image first.
        image_cache: `"none"`, `"memory"`, `"auto"` (memory below 1 GiB) or a
            path for the decoded images.
        progress: Function of (done, total), called while files are looked at.
        **reading: Further arguments of `tables.read_labels`.

    Returns:
        An `OwnData`.

    Raises:
        DataError: What `tables.read_labels` refuses, files that are missing
            or unreadable, true labels of unknown items or classes.

    Example:

    ```python
    own = alim_keras.data.load_own("labels.csv", "photos", min_votes=2)
    train = alim_keras.data.train_dataset(own.data.images, own.candidates.sets)
    ```
    """
    skip = on_bad_image == "skip"
    listing = None
    if os.path.isdir(table) and not huggingface.is_dataset(table):
        listing = list_images(table)
        if images is not None and not os.path.samefile(images, table):
            raise ConfigError(
                f"{table} is a folder of images already; give a table as "
                f"--dataset, or leave --images out. Received: --images={images}"
            )
        labels = _from_folders(table, listing, reading.get("class_names"))
        item_files = own_files.ItemFiles(listing, table, skip)
    else:
        folder = images or os.path.dirname(os.path.abspath(table))
        item_files = own_files.ItemFiles(folder, table, skip)
        if known_as_sets and known_labels:
            reading["answered"] = own_files.answered_by(
                known_labels, item_files
            )
        labels = tables.read_labels(table, **reading)
    notes = list(labels.notes)
    names = labels.candidates.class_names
    if len(names) < 2:
        raise DataError(
            f"{table}: {names[0]!r} is the only class, so there is nothing to "
            "tell apart; give the other classes with --class_names"
        )
    known, num_lost = own_files.known_of(known_labels, labels, item_files)
    num_known = 0 if known is None else np.sum(known != UNKNOWN)
    test_ids, test = read_test_labels(test_labels, names)
    # Taken before the items that are tested on leave the table.
    embedded = own_images.embedded(labels, test_ids, table, test_labels)
    test_pixels = None
    if _arrays(labels) is not None:
        tested = own_images.tested_rows(labels, test_ids, table, test_labels)
        test_pixels = _arrays(labels)[tested]
    resolved = own_files.resolve(labels, test_ids, item_files, test_labels)
    kept, files = resolved.kept, resolved.files
    notes += resolved.notes
    if not len(kept):
        raise DataError(
            f"{test_labels}: names every item of {table}, so that nothing "
            "is left to train on; keep some items out of it"
        )
    if len(kept) < len(labels.ids):
        left_out = len(labels.ids) - len(kept)
        notes.append(f"{left_out} items are tested on, not trained on")
        labels, known = _part_of(labels, kept), _part(known, kept)
    found = names_of = mean = std = None
    if test_pixels is not None:
        pixels = _arrays(labels)
    else:
        if embedded is None:
            looked_at = [files[row] for row in kept] + resolved.tested
            missing, names_of = item_files.missing(looked_at), looked_at
        else:
            looked_at, missing = embedded, []
            names_of = [*labels.ids.tolist(), *test_ids.tolist()]
        opened = own_images.open_images(
            looked_at,
            names_of,
            len(labels),
            table,
            skip,
            notes,
            folder=item_files.folder,
            missing=missing,
            image_size=image_size,
            cache=image_cache,
            verify=verify,
            progress=progress,
        )
        labels = _part_of(labels, opened.kept)
        known = _part(known, opened.kept)
        test_ids, test = test_ids[opened.tested], test[opened.tested]
        pixels, test_pixels = opened.images, opened.test_images
        found, mean, std = opened.scan, opened.mean, opened.std
    truths, candidates = labels.labels, labels.candidates
    if known is not None:
        count = np.sum(known != UNKNOWN)
        truths, candidates = _told(labels, known, known_as_sets)
        notes.append(f"{count} true labels are known, from {known_labels}")
        if num_lost + num_known > count:
            notes.append(
                f"{num_lost + num_known - count} further true labels are of "
                "items that are left out or tested on"
            )
        if known_as_sets:
            notes.append("they are trained on in place of their items' sets")
    data = ImageData(
        name=table,
        images=pixels,
        labels=truths,
        ids=labels.ids,
        class_names=names,
        test_images=test_pixels,
        test_labels=test,
        test_ids=test_ids,
        mean=mean,
        std=std,
        protocol="size",
        source=str(table),
        kind="images" if labels.features is None else "features",
    )
    return OwnData(
        data,
        candidates,
        labels.candidates,
        labels.votes,
        known,
        tuple(notes),
        found,
        names_of,
    )


def _from_folders(folder, listing, class_names):
    """Labels whose sets are the names of the images' folders."""
    if listing.class_names is None:
        raise DataError(
            f"{folder}: a folder of images says nothing about their classes; "
            "give a table as --dataset and this folder as --images, or sort "
            "the images into a folder for each class"
        )
    broken = [one for one in listing.class_names if not is_one_line(one)]
    if broken:
        raise DataError(
            f"{folder}: the names of {len(broken)} class folders hold a line "
            f"break: {first_five(list(map(repr, broken)))}; rename them"
        )
    names = tuple(class_names or listing.class_names)
    unknown = sorted(set(listing.class_names) - set(names))
    if unknown:
        raise DataError(
            f"{folder}: {len(unknown)} folders are no classes: "
            f"{first_five(unknown)}; expected some of {first_five(names)}"
        )
    place = np.array([names.index(name) for name in listing.class_names])
    sets = np.zeros((len(listing.files), len(names)), bool)
    sets[np.arange(len(sets)), place[listing.classes]] = True
    found = CandidateSets(
        listing.files,
        sets,
        names,
        {"file": str(folder), "layout": "folders"},
        str(folder),
    )
    note = f"{len(sets)} images in {len(listing.class_names)} class folders"
    return tables.Labels(ids=found.ids, candidates=found, notes=(note,))


def _arrays(labels):
    """Returns the images or features that the table itself holds, or None."""
    if labels.features is not None:
        return labels.features.reshape(len(labels.ids), 1, 1, -1)
    return labels.images if isinstance(labels.images, np.ndarray) else None


def _part(values, rows):
    return None if values is None else values[rows]


def _part_of(labels, rows):
    """Returns the `Labels` of some rows, in their order."""
    if len(rows) == len(labels.ids):
        return labels
    ids = labels.ids[rows]
    return dataclasses.replace(
        labels,
        ids=ids,
        candidates=labels.candidates.select(ids),
        votes=labels.votes and labels.votes.select(rows),
        images=_images_of(labels, rows),
        features=_part(labels.features, rows),
        labels=_part(labels.labels, rows),
    )


def _images_of(labels, rows):
    if labels.images is None or isinstance(labels.images, np.ndarray):
        return _part(labels.images, rows)
    if own_images.are_embedded(labels.images):
        return labels.images.select(rows)
    return [labels.images[row] for row in rows]


def _told(labels, known, as_sets):
    """Returns the true labels, and the sets to train on, with what is known."""
    others = UNKNOWN if labels.labels is None else labels.labels
    truths = np.where(known == UNKNOWN, others, known)
    if not as_sets:
        return truths, labels.candidates
    sets = labels.candidates.sets.copy()
    rows = np.flatnonzero(known != UNKNOWN)
    sets[rows] = False
    sets[rows, known[rows]] = True
    provenance = {**labels.candidates.provenance, "known_as_sets": len(rows)}
    return truths, dataclasses.replace(
        labels.candidates, sets=sets, provenance=provenance
    )
