"""Labels and images of one's own: a table beside a folder, or arrays."""

import contextlib
import dataclasses
import os

import numpy as np
import pandas as pd

from alim_keras import errors
from alim_keras.data import checks
from alim_keras.data import formats
from alim_keras.data import images as disk
from alim_keras.data import tables
from alim_keras.data.matching import ImageListing
from alim_keras.data.matching import list_images
from alim_keras.data.matching import match_ids
from alim_keras.data.training_set import UNKNOWN
from alim_keras.data.training_set import TrainingSet
from alim_keras.data.votes import checked_votes
from alim_keras.data.votes import sets_of_votes
from alim_keras.data.votes import true_labels

_RULES = tables.RULES - {"answered", "source"}


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
            images for each class.
        images: Folder of the images. Defaults to the table's own.
        image_size: Side in pixels to which images are brought. Defaults to
            their own, if all are square and of one size, and else to 224.
        known_labels: CSV file with `id` and `label`: true labels of some items.
        known_as_sets: Whether these replace the items' sets.
        test_labels: Such a file of items to test on, not to train on.
        on_bad_image: `"error"`, or `"skip"` to leave items out.
        progress: Function of (done, total), called while files are looked at.
        **reading: Arguments of `tables.read_votes` and `tables.sets_of_votes`.

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
    rules = {name: reading.pop(name) for name in _RULES if name in reading}
    rules |= {"class_names": reading.get("class_names"), "source": path}
    read = _votes_of_folder if os.path.isdir(path) else tables.read_votes
    votes = read(path, **reading)
    table = _images(votes, path, images, skip)
    if known_as_sets and known_labels is not None:
        cells = formats.read(known_labels)
        # A file without ids is refused as its labels are read.
        ids = cells.get("id", pd.Series(dtype=str)).astype(str).str.strip()
        rules["answered"] = table.items_of(ids.tolist())
    sets, counted = sets_of_votes(votes, **rules)
    notes, names = list(counted.attrs["notes"]), sets.class_names
    if len(names) < 2:
        raise errors.DataError(
            f"{path}: {names[0]!r} is the only class; give all by --class_names"
        )
    known, num_known = _known(table, sets, known_labels)
    truths = true_labels(votes, sets)
    truths = known if truths is None else truths
    truths = np.where(known == UNKNOWN, truths, known)
    test_ids, test = np.array([], str), np.array([], np.int64)
    if test_labels is not None:
        test_ids, test = tables.read_known_labels(test_labels, names)
    tested = table.images_of(test_ids.tolist(), test_labels)
    items = pd.Series(sets.ids.tolist())
    own, is_tested = items.map(table.of_item), items.isin(test_ids)
    if table.listing is not None:
        # An item is tested on, too, that has the file of one of the test.
        is_tested |= own.isin(tested)
    kept = np.flatnonzero(~is_tested)
    if not len(kept):
        raise errors.DataError(f"{test_labels}: names every item of {path}")
    sources = [*own[kept], *tested]
    if table.listing is not None:
        folder, files = table.listing.folder, pd.Index(table.listing.files)
        notes.append(f"{len(sources)} images in {folder}: {table.rule}")
        unused = files.difference([*own, *tested], sort=False)
        if len(unused):
            notes.append(
                f"{len(unused)} images there are in no row of {path}: "
                f"{errors.first_five(unused)}"
            )
    if is_tested.any():
        notes.append(f"{is_tested.sum()} items are tested on, not trained on")
    if table.arrays:
        ((kind, values),) = table.arrays.items()
        fields = {"images": values[own[kept]], "test_images": values[tested]}
    else:
        kind, ids = "images", [*items[kept], *test_ids.tolist()]
        fields, good = _open(
            sources, ids, len(kept), table, image_size, progress, notes
        )
        test_ids, test = test_ids[good], test[good]
        kept = kept[fields["file_rows"]]
    if known_labels is not None:
        instead = ", in place of their sets" if known_as_sets else ""
        notes.append(
            f"{np.sum(known[kept] != UNKNOWN)} of the {num_known} true "
            f"labels in {known_labels} are of items that are trained on"
            f"{instead}"
        )
    sets, is_named = sets.take(kept), counted["annotator"].notna().any()
    return TrainingSet(
        name=path,
        ids=sets.ids,
        class_names=names,
        candidates=sets,
        labels=truths[kept],
        known=None if known_labels is None else known[kept],
        known_as_sets=known_as_sets and known_labels is not None,
        votes=counted[counted["item"].isin(sets.ids)] if is_named else None,
        test_labels=test,
        test_ids=test_ids,
        source=path,
        kind=kind,
        notes=tuple(notes),
        **fields,
    )


@dataclasses.dataclass(frozen=True)
class _Images:
    """Where the images of a table's items are."""

    path: str
    skip: bool
    # From each item, also those that an empty set leaves out, to its image: a
    # file of `listing`, an encoded image, or a row of the array.
    of_item: dict
    listing: ImageListing | None
    # How items find their files, in words.
    rule: str
    # "images" or "features", where the table holds an array of them.
    arrays: dict

    def images_of(self, ids, path):
        """Returns the images that ids mean: names of items, or of files."""
        rest = [name for name in ids if name not in self.of_item]
        if not rest:
            return [self.of_item[name] for name in ids]
        if self.listing is None:
            what = f"{self.path}, which holds the {[*self.arrays, 'images'][0]}"
            checks.refuse(rest, path, f"ids are not in {what} itself")
        # One rule holds for all, so that no two ids mean one file.
        return match_ids(ids, self.listing, path, self.skip)[0]

    def items_of(self, ids):
        """Returns the items that ids mean, None where it is not just one."""
        items = {name: name for name in ids if name in self.of_item}
        rest = [name for name in ids if name not in items]
        if rest and self.listing is not None:
            owners = pd.Series([*self.of_item], self.of_item.values())
            owners = owners[~owners.index.duplicated(keep=False)]
            with contextlib.suppress(errors.DataError):
                files, _ = match_ids(rest, self.listing, keep_missing=True)
                items |= zip(rest, map(owners.get, files))
        return [items.get(name) for name in ids]


def _images(votes, path, images, skip):
    """Returns the `_Images` of the items in votes."""
    first = votes[~votes["item"].duplicated()]
    found, listing, rule, arrays, encoded = first.index, None, "", {}, None
    if path.endswith(".npz"):
        arrays = _arrays(path, first.index.max())
    elif path.endswith(".parquet"):
        encoded = _encoded(path)
    if encoded is not None:
        found = [encoded[row] for row in first.index]
    elif not arrays:
        place = os.path.abspath(path)
        folder = place if os.path.isdir(place) else os.path.dirname(place)
        listing = list_images(images or folder)
        column = "image" if "image" in first else "item"
        found, rule = match_ids(first[column].tolist(), listing, path, skip)
    of_item = dict(zip(first["item"], found, strict=True))
    return _Images(path, skip, of_item, listing, rule, arrays)


def _known(table, sets, path):
    """Returns true labels of sets, `UNKNOWN` where none is, and a count."""
    if path is None:
        return np.full(len(sets), UNKNOWN), 0
    ids, labels = tables.read_known_labels(path, sets.class_names)
    items = pd.Series(table.items_of(ids.tolist()), dtype=object)
    checks.refuse(
        ids[items.isna() | items.duplicated()],
        path,
        "ids are not of the training set, or name an item again",
        f"; expected ids such as {errors.first_five(sets.ids)}, once",
    )
    # Items that an empty set left out have no row.
    known = pd.Series(labels, items).reindex(sets.ids)
    return known.fillna(UNKNOWN).to_numpy(np.int64), len(ids)


def _votes_of_folder(path, **_):
    """Returns votes in which each image is of the class of its folder."""
    listing = list_images(path)
    if listing.class_names is None:
        raise errors.DataError(
            f"{path}: no folder for each class; sort the images into these, or "
            "give a table as --dataset and this folder as --images"
        )
    labels = [file.partition("/")[0] for file in listing.files]
    votes = pd.DataFrame({"item": listing.files, "label": labels})
    votes.attrs["class_names"] = listing.class_names
    return checked_votes(votes, [])


def _arrays(path, last_row):
    """Returns the images or features in an .npz, by that name."""
    arrays = checks.read_npz(path, ("images", "features"))
    if len(arrays) == 2:
        raise errors.DataError(
            f"{path}: holds 'images' and 'features'; leave one of them out"
        )
    for name, values in arrays.items():
        if len(values) <= last_row:
            raise errors.DataError(
                f"{path}: {name!r} must have a row for each set, {last_row + 1}"
            )
        if name == "images" and values.ndim == 3:
            arrays[name] = values[..., None]
    return arrays


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


def _open(files, ids, count, table, image_size, progress, notes):
    """Returns fields of `TrainingSet` with what can be read, and which tests.

    `files` are of `count` items, then of the test.
    """
    listing = table.listing
    folder, names = (listing.folder, files) if listing else (None, ids)
    looked = disk.scan(files, progress, folder, names)
    if listing and table.skip:
        outside = ~pd.Series(files).isin(listing.files)
        why = "it is not among the images of the folder"
        looked.loc[outside & looked["problem"].isna(), "problem"] = why
    size, channels = disk.common_form(looked)
    images = disk.DiskImages(files, image_size or size, channels, folder)
    rows = np.flatnonzero(looked["problem"][:count].isna())
    sample, damaged = rows[disk.sample_places(len(rows))], {}
    pixels = images[sample].read(problems=damaged)
    pixels = np.delete(pixels, list(damaged), axis=0)
    looked.loc[sample[list(damaged)], "problem"] = list(damaged.values())
    bad = looked[looked["problem"].notna()]
    if len(bad):
        named = list(bad["name"] + " (" + bad["problem"] + ")")
        text = f"{len(bad)} of {len(files)} images cannot be read: "
        text += errors.first_five(named)
        if not table.skip:
            advice = "mend them, or leave them out with --on_bad_image=skip"
            raise errors.DataError(f"{text}; {advice}")
        if not len(pixels):
            raise errors.DataError(
                f"{table.path}: no item is left: {text}; mend them; is "
                "--images the folder?"
            )
        # A check says so even where training would refuse them.
        notes.append(f"{text}; --on_bad_image=skip leaves their items out")
    good = looked[looked["problem"].isna()]
    trained, tested = good[good.index < count], good[good.index >= count]
    first = trained.drop_duplicates("copies").set_index("copies")["name"]
    both = tested["name"] + " (" + tested["copies"].map(first) + ")"
    both = both.dropna().tolist()
    if both:
        notes.append(
            f"{len(both)} images are tested on that show the same as one that "
            f"is trained on: {errors.first_five(both)}; leave one of them out"
        )
    mean, std = disk.channel_statistics(pixels)
    fields = {
        "images": images[trained.index],
        "test_images": images[tested.index],
        "mean": mean,
        "std": std,
        "scan": looked,
        "file_rows": trained.index.to_numpy(),
    }
    return fields, tested.index.to_numpy() - count
