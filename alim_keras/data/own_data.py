"""Labels and images of one's own: a table beside a folder, or arrays."""

import dataclasses
import functools
import os

import numpy as np

from alim_keras.data import formats
from alim_keras.data import images as disk
from alim_keras.data import tables
from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import open_npz
from alim_keras.data.checks import validate_features
from alim_keras.data.checks import validate_images
from alim_keras.data.class_names import check_class_names
from alim_keras.data.images import DiskImages
from alim_keras.data.matching import list_images
from alim_keras.data.matching import match_ids
from alim_keras.data.training_set import UNKNOWN
from alim_keras.data.training_set import TrainingSet
from alim_keras.data.votes import sets_of_votes
from alim_keras.data.votes import true_labels
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import first_five

_USUAL = 224
_RULES = "min_votes min_confidence none_of_these empty_set duplicates".split()


class UnreadableError(DataError):
    """No image can be read; `problems` lists (file, reason) of each."""

    def __init__(self, message, problems):
        super().__init__(message)
        self.problems = problems


def load_table(
    path,
    images=None,
    *,
    image_size=None,
    known_labels=None,
    known_as_sets=False,
    test_labels=None,
    on_bad_image="error",
    progress=None,
    **reading,
):
    """Loads labels of one's own and the images that they are about.

    Args:
        path: A table, see `tables.read_votes`; or a folder with a folder of
            images for each class, whose names are then sets of one.
        images: Folder of the images. Defaults to the table's own.
        image_size: Side in pixels to which images are brought. Defaults to
            their own, if all are square and of one size, and else to 224.
        known_labels: CSV file with `id` and `label`: true labels of some of
            the items. They are for reports, and for the noise rate.
        known_as_sets: Whether these stand in place of the items' sets, which
            may then be empty.
        test_labels: CSV file with `id` and `label`: items to test on, which
            are not trained on. Of a table that holds images or features
            itself they are items of the table.
        on_bad_image: `"error"`, or `"skip"` to leave out items whose file is
            missing or unreadable.
        progress: Function of (done, total), called while files are looked at.
        **reading: Further arguments of `tables.read_votes` and
            `tables.sets_of_votes`.

    Returns:
        A `TrainingSet` with candidate sets.

    Raises:
        DataError: What the reader of tables refuses, files that are missing
            or unreadable, true labels of unknown items or classes.

    Example:

    ```python
    own = alim_keras.data.load_table("labels.csv", "photos", min_votes=2)
    train = alim_keras.data.train_dataset(own.images, own.sets)
    ```
    """
    path, skip = os.fspath(path), on_bad_image == "skip"
    if os.path.isdir(path):
        table = _read_folder(path, images, reading.get("class_names"), skip)
    else:
        answered = known_labels if known_as_sets else None
        table = _read_file(path, images, answered, reading, skip)
    notes, sets, truths = table.notes, table.sets, table.truths
    names = sets.class_names
    if len(names) < 2:
        raise DataError(
            f"{path}: {names[0]!r} is the only class, so there is nothing to "
            "tell apart; give the other classes with --class_names"
        )
    known, num_given = table.known(known_labels)
    test_ids, test = np.array([], str), np.array([], np.int64)
    if test_labels is not None:
        test_ids, test = tables.read_known_labels(test_labels, names)
    kept, items, tested = table.resolve(test_ids, test_labels)
    if not len(kept):
        raise DataError(
            f"{test_labels}: names every item of {path}, so that nothing "
            "is left to train on; keep some items out of it"
        )
    if len(kept) < len(sets):
        left_out = len(sets) - len(kept)
        notes.append(f"{left_out} items are tested on, not trained on")
    if table.holds in ("images", "features"):
        pixels = table.pixels
        fields = {"images": pixels[items], "test_images": pixels[tested]}
        fields["kind"] = table.holds
    else:
        files = labels = [*items, *tested]
        if table.holds == "encoded":
            labels = [*sets.ids[kept].tolist(), *test_ids.tolist()]
            files = [table.pixels[row] for row in files]
        fields = _open(files, labels, len(kept), table, image_size, progress)
        good = fields.pop("tested")
        test_ids, test = test_ids[good], test[good]
        kept = kept[fields["file_rows"]]
    if known is not None:
        count = int(np.sum(known[kept] != UNKNOWN))
        others = np.full(len(known), UNKNOWN) if truths is None else truths
        truths = np.where(known == UNKNOWN, others, known)
        notes.append(f"{count} true labels are known, from {known_labels}")
        if num_given > count:
            notes.append(
                f"{num_given - count} further true labels are of items that "
                "are left out or tested on"
            )
        if known_as_sets:
            notes.append("they are trained on in place of their items' sets")
    sets, votes = sets.take(kept), table.votes
    if votes is not None:
        votes = votes[votes["item"].isin(sets.ids)]
    return TrainingSet(
        name=path,
        ids=sets.ids,
        class_names=names,
        candidates=sets,
        labels=None if truths is None else truths[kept],
        known=None if known is None else known[kept],
        known_as_sets=known_as_sets and known is not None,
        votes=votes,
        test_labels=test,
        test_ids=test_ids,
        protocol="size",
        source=path,
        notes=tuple(notes),
        **fields,
    )


@dataclasses.dataclass
class _Table:
    """What a table or a folder says, before its images are opened."""

    path: str
    # All items, also those left out.
    items: list
    folder: str
    skip: bool = False
    # From an item to the path that a column gives, if there is one.
    named: dict = dataclasses.field(default_factory=dict)
    # "files", or of a table that holds the pixels: "images" and "features"
    # (arrays in the order of the items), "encoded" (a list of bytes).
    holds: str = "files"
    pixels: object = None
    sets: CandidateSets = None
    votes: object = None
    truths: np.ndarray = None
    notes: list = dataclasses.field(default_factory=list)

    @functools.cached_property
    def listing(self):
        """The `ImageListing` of the folder."""
        return list_images(self.folder)

    def files(self, items):
        """Returns the files of items, and the rule by which they are found."""
        paths = [self.named.get(item, item) for item in items]
        return match_ids(paths, self.listing, self.path, self.skip)

    def rows_of(self, ids):
        """Returns a dict from ids to rows of `items`, by id or else by file.

        Unknown ids are not in it.
        """
        places = {item: row for row, item in enumerate(self.items)}
        rows = {name: places[name] for name in ids if name in places}
        rest = [name for name in ids if name not in rows]
        if not rest or self.holds != "files":
            return rows
        try:
            files, _ = match_ids(rest, self.listing, keep_missing=True)
        except DataError:
            return rows
        owners = {}
        for row, file in enumerate(self.files(self.items)[0]):
            # Of several items with one file none is meant.
            owners[file] = None if file in owners else row
        pairs = zip(rest, files, strict=True)
        more = {name: owners.get(file) for name, file in pairs}
        return rows | {k: row for k, row in more.items() if row is not None}

    def known(self, path):
        """Returns the true labels of a file, int64 `(N,)`, and their number.

        They are `UNKNOWN` where it gives none, and None without a file.
        """
        if path is None:
            return None, 0
        ids, labels = tables.read_known_labels(path, self.sets.class_names)
        rows, ids = self.rows_of(ids.tolist()), ids.tolist()
        unknown = [repr(name) for name in ids if name not in rows]
        if unknown:
            raise DataError(
                f"{path}: {len(unknown)} ids are not of the training set: "
                f"{first_five(unknown)}; expected ids such as "
                f"{first_five(self.sets.ids[:6])}"
            )
        owners = {}
        twice = [n for n in ids if owners.setdefault(rows[n], n) != n]
        if twice:
            raise DataError(
                f"{path}: {len(twice)} ids name an item again: "
                f"{first_five(list(map(repr, twice)))}; give one line for each"
            )
        places = {item: row for row, item in enumerate(self.sets.ids.tolist())}
        known = np.full(len(self.sets), UNKNOWN, np.int64)
        for name, label in zip(ids, labels, strict=True):
            place = places.get(self.items[rows[name]])
            if place is not None:  # Else an empty set left the item out.
                known[place] = label
        return known, len(ids)

    def resolve(self, test_ids, test_labels):
        """Finds the images of items and of those that are tested on.

        An item is tested on if it has the id, or the file, of one of the
        test: ids may be written in another way there.

        Returns:
            The rows of the items that are trained on; and the images of
            these and of the tested ones: files, or rows of `pixels`.
        """
        is_tested = np.isin(self.sets.ids, test_ids)
        test_ids, items = test_ids.tolist(), self.sets.ids.tolist()
        places = {item: row for row, item in enumerate(self.items)}
        unknown = [name for name in test_ids if name not in places]
        if self.holds != "files":
            if unknown:
                raise DataError(
                    f"{test_labels}: {len(unknown)} ids are not in "
                    f"{self.path}, which holds the images or features itself: "
                    f"{first_five(unknown)}; name ids of the table, such as "
                    f"{first_five(self.items)}"
                )
            kept = np.flatnonzero(~is_tested)
            trained = [places[items[row]] for row in kept]
            return kept, trained, [places[name] for name in test_ids]
        files, rule = self.files(items)
        tested, more = [], rule
        if test_ids and self.named and not unknown:
            # The table's names of the items come before those of the files.
            tested, _ = self.files(test_ids)
        elif test_ids:
            tested, more = match_ids(
                test_ids, self.listing, test_labels, self.skip
            )
        used = set(tested)
        is_tested |= np.array([file in used for file in files], bool)
        kept = np.flatnonzero(~is_tested)
        count = len(kept) + len(tested)
        self.notes.append(f"{count} images in {self.folder}: {rule}")
        if more != rule:
            self.notes.append(f"in {test_labels} {more}")
        used.update(files)
        unused = [file for file in self.listing if file not in used]
        if unused:
            self.notes.append(
                f"{len(unused)} images there are in no row of {self.path}: "
                f"{first_five(unused)}"
            )
        return kept, [files[row] for row in kept], tested


def _read_folder(path, images, class_names, skip):
    """Returns the `_Table` whose sets are the names of images' folders."""
    if images is not None and not os.path.samefile(images, path):
        raise ConfigError(
            f"{path} is a folder of images already; give a table as "
            f"--dataset, or leave --images out. Received: --images={images}"
        )
    listing = list_images(path)
    if listing.class_names is None:
        raise DataError(
            f"{path}: a folder of images says nothing about their classes; "
            "give a table as --dataset and this folder as --images, or sort "
            "the images into a folder for each class"
        )
    own = check_class_names(listing.class_names, path)
    names = tuple(class_names or own)
    unknown = sorted(set(own) - set(names))
    if unknown:
        raise DataError(
            f"{path}: {len(unknown)} folders are no classes: "
            f"{first_five(unknown)}; expected some of {first_five(names)}"
        )
    classes = np.array([names.index(name) for name in own])[listing.classes]
    table = _Table(path, listing.files, path, skip)
    table.listing = listing
    table.sets = CandidateSets.from_pairs(
        np.arange(len(listing)),
        classes,
        listing.files,
        names,
        provenance={"file": path, "layout": "folders"},
        source=path,
    )
    table.notes = [f"{len(listing)} images in {len(own)} class folders"]
    return table


def _read_file(path, images, answered, reading, skip):
    """Returns the `_Table` of a file of labels."""
    how = {name: reading.pop(name) for name in _RULES if name in reading}
    votes = tables.read_votes(path, **reading)
    first = votes[~votes["item"].duplicated()]
    items = first["item"].tolist()
    folder = os.fspath(images or os.path.dirname(os.path.abspath(path)))
    table = _Table(path, items, folder, skip)
    if "image" in votes:
        table.named = dict(zip(items, first["image"], strict=True))
    held = _held(path, first.index.to_numpy())
    if held is not None:
        table.holds, table.pixels = held
    if answered is not None:
        cells = formats.read(answered, formats.format_of(answered), ("id",))
        if "id" in cells:  # Otherwise refused as the labels are read.
            ids = [str(cell).strip() for cell in cells["id"]]
            rows = table.rows_of(ids).values()
            how["answered"] = {items[row] for row in rows}
    table.sets, counted = sets_of_votes(
        votes, class_names=reading.get("class_names"), source=path, **how
    )
    table.truths = true_labels(votes, table.sets)
    table.notes = list(counted.attrs["notes"])
    if counted["annotator"].notna().any():
        table.votes = counted
    return table


def _held(path, rows):
    """Returns the pair (`holds`, `pixels`) of a `_Table`, or None for files."""
    if path.endswith(".parquet"):
        column = _encoded(path)
        return column and ("encoded", [column[row] for row in rows])
    if not path.endswith(".npz"):
        return None
    arrays = open_npz(path, only=("images", "features"))
    if len(arrays) == 2:
        raise DataError(
            f"{path}: holds 'images' and 'features', and one network takes "
            "one of them; leave one out"
        )
    for name, values in arrays.items():
        if name == "images" and values.ndim == 3:
            values = values[..., None]
        if len(values) <= rows.max():
            raise DataError(
                f"{path}: {name!r} must have a row for each set. "
                f"Received: shape={values.shape}"
            )
        check = validate_images if name == "images" else validate_features
        try:
            return name, check(values)[rows]
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
    return None


def _encoded(path):
    """Returns the images in a column of bytes, or of HuggingFace, or None."""
    import pyarrow
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(path)
    for field in file.schema_arrow:
        is_struct = pyarrow.types.is_struct(field.type)
        if is_struct and field.type.get_field_index("bytes") < 0:
            continue
        if is_struct or pyarrow.types.is_binary(field.type):
            column = file.read(columns=[field.name]).column(0).to_pylist()
            if is_struct:
                column = [cell and cell["bytes"] for cell in column]
            return [cell or b"" for cell in column]
    return None


def _open(files, names, count, table, image_size, progress):
    """Looks at images, and returns those that can be read.

    A part of the items is decoded, for mean and deviation; what fails there
    is a problem like any other.

    Args:
        files: Paths, or encoded images: of `count` items, then of the test.
        names: Strings, their names in messages.
        count: Integer.
        table: The `_Table`, whose notes are added to.
        image_size: See `load_table`.
        progress: See `load_table`.

    Returns:
        Dict with fields of `TrainingSet`, and `tested`: which of the test can
        be read.
    """
    looked = disk.scan(files, progress, table.folder, names)
    if table.skip and table.holds == "files":
        listed = set(table.listing)
        why = "it is not among the images of the folder"
        missing = [row for row, file in enumerate(files) if file not in listed]
        looked = looked.with_problems(dict.fromkeys(missing, why))

    size, channels = image_size or _USUAL, looked.unified_channels()
    # Images that differ from the others decide the size of all, so they must
    # be sound, and what seems to be cut short often is.
    odd, bad = np.union1d(looked.odd_rows(), looked.cut_rows()), {}
    part = [files[row] for row in odd]
    DiskImages(part, size, channels, table.folder).read(problems=bad)
    looked = looked.with_problems({int(odd[n]): bad[n] for n in bad})
    size = image_size or looked.unified_size()
    channels = looked.unified_channels()
    everything = DiskImages(files, size, channels, table.folder)
    rows = np.setdiff1d(np.arange(count), list(looked.problems))
    sample, bad = rows[disk.sample_places(len(rows))], {}
    pixels = np.delete(everything[sample].read(problems=bad), list(bad), axis=0)
    looked = looked.with_problems({int(sample[n]): bad[n] for n in bad})
    if bad and len(rows) > len(sample):
        table.notes.append(
            f"{len(bad)} of {len(sample)} images that were decoded are "
            f"damaged, of {len(rows)}"
        )
    problems = [(names[n], why) for n, why in looked.problems.items()]
    if problems:
        shown = first_five([f"{name} ({why})" for name, why in problems])
        text = f"{len(problems)} of {len(files)} images cannot be read: {shown}"
        if not table.skip:
            raise DataError(
                f"{text}; mend them, or leave their items out with "
                "--on_bad_image=skip"
            )
        if not len(pixels):
            raise UnreadableError(
                f"{table.path}: no item has an image that can be read: "
                f"{shown}; mend them, or name another folder with --images",
                problems,
            )
        # A check says so even where training would refuse them.
        table.notes.append(
            f"{text}; --on_bad_image=skip leaves their items out"
        )
    both = [rows for rows in looked.identical if rows[0] < count <= rows[-1]]
    if both:
        number = sum(int(np.sum(rows >= count)) for rows in both)
        shown = [f"{names[rows[-1]]} ({names[rows[0]]})" for rows in both[:6]]
        table.notes.append(
            f"{number} images are tested on that show the same as one that is "
            f"trained on: {first_five(shown)}; leave one of them out"
        )
    mean, std = disk.channel_statistics(pixels)
    good = np.setdiff1d(np.arange(len(files)), list(looked.problems))
    kept, tested = good[good < count], good[good >= count]
    return {
        "images": everything[kept],
        "test_images": everything[tested],
        "mean": mean,
        "std": std,
        "scan": looked,
        "file_rows": kept,
        "tested": tested - count,
    }
