"""What a model is to predict: image files, arrays, tables, in batches."""

import dataclasses
import os
from collections.abc import Callable

import numpy as np

from alim_keras.data import tables
from alim_keras.data.candidate_file import open_npz
from alim_keras.data.image_checks import validate_features
from alim_keras.data.image_checks import validate_images
from alim_keras.data.messages import first_five
from alim_keras.data.messages import one_line
from alim_keras.data.sources.disk_images import DiskImages
from alim_keras.data.sources.listing import list_images
from alim_keras.data.sources.listing import match_ids
from alim_keras.data.tables.array_parts import id_list
from alim_keras.data.tables.table import id_texts
from alim_keras.errors import DataError

_ARRAYS = (".npz", ".npy")
_TEXT = (".csv", ".tsv")


@dataclasses.dataclass(frozen=True)
class Batch:
    """Some items: their `ids`, their `values` as an array, and their `sets`.

    `sets` is bool `(B, C)`, or None where nobody gave candidate sets.
    """

    ids: object
    values: np.ndarray
    sets: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Items of one kind.

    Attributes:
        batches: Function from a batch size to an iterator of `Batch`; only
            one batch is in memory at a time.
        total: How many items there are, or None if it is not known before
            the end.
    """

    batches: Callable
    total: int | None


class Skipped:
    """Counts images that cannot be read, or refuses the first.

    Args:
        allowed: Whether they are left out.

    Attributes:
        count: Integer.
        first: List of the first five messages, and one more.
    """

    def __init__(self, allowed):
        self.allowed = allowed
        self.count = 0
        self.first = []

    def note(self, error):
        """Counts one image, or raises its error."""
        if not self.allowed:
            raise DataError(
                f"{error}; --on_bad_image=skip leaves such images out"
            ) from error
        self.count += 1
        if len(self.first) < 6:
            self.first.append(str(error))


def from_paths(paths, predictor, skipped):
    """Returns the `Inputs` of files and folders, in the order given.

    Args:
        paths: Strings. Images take their path as id.
        predictor: The `Predictor`.
        skipped: A `Skipped`.

    Raises:
        DataError: A path that does not exist, or is not what the model takes.
    """
    paths = [os.path.expanduser(path) for path in paths]
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(paths)} files or folders do not exist: "
            f"{first_five(missing)}"
        )
    found, files = [], []
    for path in paths:
        kind = os.path.splitext(path)[1].lower()
        if kind in _ARRAYS:
            if files:
                # What comes after these comes after them.
                found.append(_from_files(files, files, predictor, skipped))
                files = []
            found.append(_from_array(path, predictor))
        elif predictor.takes_features:
            found.append(_from_text(path, kind, predictor))
        elif kind in _TEXT:
            raise DataError(
                f"{path} is a table, and the model takes images. Give a table "
                "of images as --candidates_file"
            )
        elif os.path.isdir(path):
            for file in list_images(path).files:
                files.append(os.path.join(path, file))
        else:
            files.append(path)
    if files:
        found.append(_from_files(files, files, predictor, skipped))
    return found


def from_table(path, images, predictor, skipped, **reading):
    """Returns the `Inputs` of a table of candidate sets, in a list.

    Args:
        path: The table.
        images: Folder of its images, or None for the table's own.
        predictor: The `Predictor`.
        skipped: A `Skipped`.
        **reading: Arguments of `tables.read_labels`.
    """
    labels = tables.read_labels(
        path, **{**reading, "class_names": predictor.class_names}
    )
    sets = labels.candidates.sets
    if predictor.takes_features or labels.features is not None:
        if labels.features is None:
            raise DataError(
                f"{path} holds no feature vectors, and the model takes "
                f"{predictor.input_shape[0]} features; give an .npz file with "
                "the arrays features and candidates"
            )
        rows = _slices(labels.ids, labels.features, sets)
        return [Inputs(_checked(rows, predictor, path), len(labels.ids))]
    files = labels.images
    if isinstance(files, np.ndarray):
        rows = _slices(labels.ids, files, sets)
        return [Inputs(_checked(rows, predictor, path), len(labels.ids))]
    if files is None or isinstance(files[0], str):
        names = labels.ids if files is None else files
        folder = images or os.path.dirname(os.path.abspath(path))
        # Those without a file are bad images too.
        found, _ = match_ids(names, folder, path, skipped.allowed)
        files = [os.path.join(folder, file) for file in found]
    return [_from_files(labels.ids, files, predictor, skipped, sets)]


def _from_files(ids, files, predictor, skipped, sets=None):
    """Image files, or encoded images, decoded as they were for training."""
    height, width, channels = predictor.input_shape
    images = DiskImages(files, max(height, width), channels)

    def batches(size):
        for start in range(0, len(files), size):
            rows = np.arange(start, min(start + size, len(files)))
            rows, values = _read(images, rows, skipped)
            if len(rows):
                yield Batch(
                    [ids[row] for row in rows],
                    values,
                    None if sets is None else sets[rows],
                )

    return Inputs(batches, len(files))


def _read(images, rows, skipped):
    """Returns the rows that can be read, and their pixels."""
    try:
        return rows, images.read(rows)
    except DataError as error:
        if not skipped.allowed:
            skipped.note(error)
    kept, values = [], []
    for row in rows:
        try:
            values.append(images.read([row])[0])
            kept.append(row)
        except DataError as error:
            skipped.note(error)
    return kept, np.array(values)


def _from_array(path, predictor):
    """An .npy file, or an .npz file with images or features, perhaps ids."""
    name = "features" if predictor.takes_features else "images"
    ids = None
    if path.lower().endswith(".npz"):
        arrays = open_npz(path)
        if name not in arrays:
            raise DataError(
                f"{path}: there is no array {name!r}, which the model takes. "
                f"Received: {', '.join(sorted(arrays)) or 'no arrays'}"
            )
        values, ids = arrays[name], arrays.get("ids")
    else:
        try:
            values = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(
                f"{path}: cannot be read as an array: {one_line(error)}"
            ) from error
    if ids is None:
        # As `ImageData` numbers what has no names.
        ids = [str(row) for row in range(len(values))]
    elif len(ids) != len(values):
        raise DataError(f"{path}: {len(values)} {name}, but {len(ids)} ids")
    else:
        ids = id_list(path, ids)
        _check_once(path, ids, 0, {})
    if name == "images" and values.ndim == 3:
        values = values[..., None]
    rows = _slices(ids, values)
    return Inputs(_checked(rows, predictor, path), len(values))


def _slices(ids, values, sets=None):
    def batches(size):
        for start in range(0, len(values), size):
            part = slice(start, start + size)
            yield Batch(
                ids[part], values[part], None if sets is None else sets[part]
            )

    return batches


def _from_text(path, kind, predictor):
    """Feature vectors in a .csv or .tsv file: columns of numbers.

    The column `id` names the rows, by its text as it stands there (`NA` is a
    name, too); without it they are numbered. Columns of text are passed over.
    """
    if kind not in _TEXT:
        raise DataError(
            f"{path}: the model takes vectors of {predictor.input_shape[0]} "
            "features, in .npz, .npy, .csv or .tsv files; this is none"
        )
    import pandas as pd

    def batches(size):
        start, seen = 0, {}
        try:
            with pd.read_csv(
                path,
                sep="\t" if kind == ".tsv" else ",",
                chunksize=size,
                # Bytes, as pandas takes the text NA for nothing.
                converters={"id": str.encode},
                encoding="utf-8-sig",
            ) as chunks:
                for chunk in chunks:
                    ids = [str(start + row) for row in range(len(chunk))]
                    if "id" in chunk:
                        ids = chunk.pop("id").tolist()
                    if not len(chunk):
                        # Without rows, pandas knows no numbers.
                        continue
                    numbers = chunk.select_dtypes("number")
                    _check_columns(path, numbers, predictor)
                    ids = _named(path, ids, start)
                    _check_once(path, ids, start, seen)
                    yield Batch(ids, numbers.to_numpy("float64"))
                    start += len(chunk)
        except (ValueError, OSError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{path}: cannot be read as a table: {one_line(error)}"
            ) from error

    return Inputs(_checked(batches, predictor, path), None)


def _named(path, ids, start):
    """Returns ids as tables have them, or refuses those that name nothing."""
    found = id_texts(ids)
    blank = [start + row for row, one in enumerate(found) if one is None]
    if blank:
        raise DataError(
            f"{path}: {len(blank)} ids are blank or no text, in rows "
            f"{first_five(blank)} (the first is row 0); give every row an id, "
            "or leave the column out"
        )
    return found


def _check_once(path, ids, start, seen):
    """Refuses ids that an earlier row has; `seen` is a dict of those rows."""
    twice = []
    for row, one in enumerate(ids, start):
        first = seen.setdefault(one, row)
        if first != row:
            twice.append(f"{one} (rows {first} and {row})")
    if twice:
        raise DataError(
            f"{path}: {len(twice)} ids come twice: {first_five(twice)} (the "
            "first is row 0); give every row an id of its own"
        )


def _check_columns(path, numbers, predictor):
    wanted = predictor.input_shape[0]
    if numbers.shape[1] != wanted:
        raise DataError(
            f"{path}: the model takes {wanted} features, and there are "
            f"{numbers.shape[1]} columns of numbers beside id: "
            f"{first_five(list(numbers.columns))}"
        )


def _checked(batches, predictor, path):
    """Returns `batches` with values in the form that the model takes."""

    def checked(size):
        for batch in batches(size):
            values = np.asarray(batch.values)
            shape, wanted = values.shape[1:], predictor.input_shape
            try:
                if predictor.takes_features:
                    values = validate_features(values, batch.ids)
                    values = values.reshape(len(values), -1)
                else:
                    values = validate_images(values, batch.ids)
            except DataError as error:
                raise DataError(f"{path}: {error}") from error
            if values.shape[-1] != wanted[-1]:
                what = "features" if predictor.takes_features else "channels"
                raise DataError(
                    f"{path}: the model takes {wanted[-1]} {what}. Received: "
                    f"{shape[-1]} {what}"
                )
            yield dataclasses.replace(batch, values=values)

    return checked
