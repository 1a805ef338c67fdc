"""Labels and images of one's own: a table beside a folder, or arrays."""

import contextlib
import dataclasses
import os

import numpy as np
import pandas as pd

from alim_keras.data import formats
from alim_keras.data import images as disk
from alim_keras.data import tables
from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import in_file
from alim_keras.data.checks import read_npz
from alim_keras.data.checks import refuse
from alim_keras.data.checks import validate_features
from alim_keras.data.checks import validate_images
from alim_keras.data.class_names import check_class_names
from alim_keras.data.images import DiskImages
from alim_keras.data.matching import ImageListing
from alim_keras.data.matching import list_images
from alim_keras.data.matching import match_ids
from alim_keras.data.training_set import UNKNOWN
from alim_keras.data.training_set import TrainingSet
from alim_keras.data.votes import sets_of_votes
from alim_keras.data.votes import true_labels
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import first_five

_RULES = {*tables.RULES} - {"answered", "source"}


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
            the items, for reports and for the noise rate.
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
            f"{path}: {names[0]!r} is the only class; give the others with "
            "--class_names"
        )
    known = None
    if known_labels is not None:
        known, num_given = _known(table, known_labels)
        others = UNKNOWN if truths is None else truths
        truths = np.where(known == UNKNOWN, others, known)
    test_ids, test = np.array([], str), np.array([], np.int64)
    if test_labels is not None:
        test_ids, test = tables.read_known_labels(test_labels, names)
    tested = table.files_of(test_ids.tolist(), test_labels)
    # An item is tested on if it has the id, or the file, of one of the test.
    items = pd.Series(sets.ids.tolist())
    files = items.map(table.files)
    is_tested = files.isin(tested) | items.isin(test_ids)
    kept = np.flatnonzero(~is_tested)
    if not len(kept):
        raise DataError(f"{test_labels}: names every item of {path}")
    sources = [*files[kept], *tested]
    if table.listing is not None:
        notes.append(
            f"{len(sources)} images in {table.listing.folder}: {table.rule}"
        )
        used = {*files, *tested}
        unused = [file for file in table.listing.files if file not in used]
        if unused:
            notes.append(
                f"{len(unused)} images there are in no row of {path}: "
                f"{first_five(unused)}"
            )
    if is_tested.any():
        notes.append(f"{is_tested.sum()} items are tested on, not trained on")
    if isinstance(table.pixels, np.ndarray):
        fields = {
            "images": table.pixels[files[kept]],
            "test_images": table.pixels[tested],
            "kind": table.kind,
        }
    else:
        labels = sources
        if table.listing is None:
            labels = [*items[kept], *test_ids.tolist()]
            sources = [table.pixels[row] for row in sources]
        fields = _open(sources, labels, len(kept), table, image_size, progress)
        good = fields.pop("tested")
        test_ids, test = test_ids[good], test[good]
        kept = kept[fields["file_rows"]]
    if known is not None:
        count = np.sum(known[kept] != UNKNOWN)
        instead = ", in place of their sets" if known_as_sets else ""
        notes.append(
            f"{count} of the {num_given} true labels in {known_labels} are of "
            f"items that are trained on{instead}"
        )
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
    """A table or a folder, before its images are opened."""

    path: str
    skip: bool
    listing: ImageListing | None
    # How items find their files, in words.
    rule: str
    # From each item, also those that an empty set left out, to its file, or
    # where there is no listing to its row in `pixels`.
    files: dict
    sets: CandidateSets = None
    notes: list = dataclasses.field(default_factory=list)
    # "images" or "features".
    kind: str = "images"
    # An array, or a list of encoded images.
    pixels: object = None
    votes: object = None
    truths: np.ndarray = None

    def files_of(self, ids, path):
        """Returns the files, or rows of pixels, that the ids in a file mean.

        The table's names of the items come before those of the files.
        """
        rest = [name for name in ids if name not in self.files]
        if not rest:
            return [self.files[name] for name in ids]
        if self.listing is None:
            holds = f"which holds the {self.kind} itself"
            refuse(rest, path, f"ids are not in {self.path}, {holds}")
        # One rule holds for all, so that no two ids mean one file.
        return match_ids(ids, self.listing, path, self.skip)[0]

    def items_of(self, ids):
        """Returns the items that ids mean, None where it is not just one."""
        items = {name: name for name in ids if name in self.files}
        rest = [name for name in ids if name not in items]
        if rest and self.listing is not None:
            owners = pd.Series([*self.files], self.files.values(), dtype=object)
            owners = owners[~owners.index.duplicated(keep=False)]
            with contextlib.suppress(DataError):
                files, _ = match_ids(rest, self.listing, keep_missing=True)
                items |= zip(rest, map(owners.get, files))
        return [items.get(name) for name in ids]


def _known(table, path):
    """Returns the true labels in a file, `UNKNOWN` elsewhere, and a count."""
    ids, labels = tables.read_known_labels(path, table.sets.class_names)
    items = pd.Series(table.items_of(ids.tolist()), dtype=object)
    wrong = ids[items.isna() | items.duplicated()]
    refuse(
        wrong,
        path,
        "ids are not of the training set, or name an item again",
        f"; expected ids such as {first_five(table.sets.ids[:6])}, each once",
    )
    # Items that an empty set left out have no row.
    known = pd.Series(labels, items).reindex(table.sets.ids)
    return known.fillna(UNKNOWN).to_numpy(np.int64), len(ids)


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
    expected = f"; expected some of {first_five(names)}"
    refuse(unknown, path, "folders are no classes", expected)
    places = dict(zip(listing.class_names, map(names.index, own)))
    rule, files = f"{len(own)} class folders", listing.files
    table = _Table(path, skip, listing, rule, dict(zip(files, files)))
    table.sets = CandidateSets.from_pairs(
        np.arange(len(files)),
        [places[file.partition("/")[0]] for file in files],
        files,
        names,
        provenance={"file": path, "layout": "folders"},
        source=path,
    )
    return table


def _read_file(path, images, answered, reading, skip):
    """Returns the `_Table` of a file of labels."""
    how = {name: reading.pop(name) for name in _RULES if name in reading}
    votes = tables.read_votes(path, **reading)
    first = votes[~votes["item"].duplicated()]
    kind, pixels = _held(path, first.index.max())
    listing, rule, files = None, "", first.index
    if pixels is None:
        listing = list_images(images or os.path.dirname(os.path.abspath(path)))
        column = "image" if "image" in first else "item"
        files, rule = match_ids(first[column].tolist(), listing, path, skip)
    files = dict(zip(first["item"], files, strict=True))
    table = _Table(path, skip, listing, rule, files, kind=kind, pixels=pixels)
    if answered is not None:
        cells = formats.read(answered)
        if "id" in cells:  # Otherwise refused as the labels are read.
            ids = cells["id"].astype(str).str.strip().tolist()
            how["answered"] = table.items_of(ids)
    table.sets, counted = sets_of_votes(
        votes, class_names=reading.get("class_names"), source=path, **how
    )
    table.notes = list(counted.attrs["notes"])
    table.truths = true_labels(votes, table.sets)
    if counted["annotator"].notna().any():
        table.votes = counted
    return table


def _held(path, last_row):
    """Returns `kind` and `pixels` of a `_Table`; None if it holds none."""
    if path.endswith(".parquet"):
        return "images", _encoded(path)
    if not path.endswith(".npz"):
        return "images", None
    arrays = read_npz(path, ("images", "features"))
    if not arrays:
        return "images", None
    if len(arrays) == 2:
        raise DataError(
            f"{path}: holds 'images' and 'features', and one network takes "
            "one of them; leave one out"
        )
    ((name, values),) = arrays.items()
    if name == "images" and values.ndim == 3:
        values = values[..., None]
    check = validate_images if name == "images" else validate_features
    with in_file(path):
        if len(values) <= last_row:
            raise DataError(
                f"{name!r} must have a row for each set. Received: "
                f"shape={values.shape}"
            )
        return name, check(values)


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
    """Returns fields of `TrainingSet`, of the images that can be read.

    `files` are paths or encoded images of `count` items, then of the test;
    the key `tested` says which of the test can be read.
    """
    folder = table.listing and table.listing.folder
    looked = disk.scan(files, progress, folder, names)
    if table.skip and table.listing is not None:
        outside = ~pd.Series(files, dtype=object).isin(table.listing.files)
        why = "it is not among the images of the folder"
        looked.loc[outside & looked["problem"].isna(), "problem"] = why
    size, channels = disk.common_form(looked)
    images = DiskImages(files, image_size or size, channels, folder)
    rows = np.flatnonzero(looked["problem"][:count].isna())
    sample, damaged = rows[disk.sample_places(len(rows))], {}
    pixels = images[sample].read(problems=damaged)
    pixels = np.delete(pixels, list(damaged), axis=0)
    looked.loc[sample[list(damaged)], "problem"] = list(damaged.values())
    bad = looked[looked["problem"].notna()]
    if len(bad):
        problems = first_five(list(bad["name"] + " (" + bad["problem"] + ")"))
        text = f"{len(bad)} of {len(files)} images cannot be read: {problems}"
        if not table.skip:
            raise DataError(
                f"{text}; mend them, or leave their items out with "
                "--on_bad_image=skip"
            )
        if not len(pixels):
            raise DataError(
                f"{table.path}: no item is left: {text}; mend them; is "
                "--images the folder?"
            )
        # A check says so even where training would refuse them.
        table.notes.append(
            f"{text}; --on_bad_image=skip leaves their items out"
        )
    good = looked[looked["problem"].isna()]
    trained, tested = good[good.index < count], good[good.index >= count]
    first = trained.drop_duplicates("copies").set_index("copies")["name"]
    both = tested["name"] + " (" + tested["copies"].map(first) + ")"
    both = both.dropna().tolist()
    if both:
        table.notes.append(
            f"{len(both)} images are tested on that show the same as one that "
            f"is trained on: {first_five(both)}; leave one of them out"
        )
    mean, std = disk.channel_statistics(pixels)
    return {
        "images": images[trained.index],
        "test_images": images[tested.index],
        "mean": mean,
        "std": std,
        "scan": looked,
        "file_rows": trained.index.to_numpy(),
        "tested": tested.index.to_numpy() - count,
    }
