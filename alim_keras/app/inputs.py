"""The items that a model is to predict, in batches: files, arrays, tables."""

import dataclasses
import os

import numpy as np

from alim_keras.data import own_data
from alim_keras.data import tables
from alim_keras.data import validation
from alim_keras.data.candidates import CandidateSets
from alim_keras.data.checks import check_ids
from alim_keras.data.images import DiskImages
from alim_keras.data.images import image_rows
from alim_keras.data.matching import list_images
from alim_keras.errors import DataError
from alim_keras.errors import first_five

_ARRAYS = (".npz", ".npy")
_TEXT = (".csv", ".tsv")


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Items of one kind, in the form that the model takes.

    Attributes:
        ids: Sequence of strings `(N,)`.
        values: Array `(N, ...)` or `DiskImages`.
        sets: `CandidateSets`, or None where nobody gave some.
        source: String, for messages.
    """

    ids: object
    values: object
    sets: CandidateSets | None = None
    source: str = ""

    def batches(self, size, skipped):
        """Yields rows and their values; only one batch is in memory.

        Args:
            size: Integer, the largest number of rows at once.
            skipped: Dict from an id to its error, to which images that cannot
                be read are added; None refuses them.

        Raises:
            DataError: An image cannot be read, or values do not fit.
        """
        for start in range(0, len(self.ids), size):
            rows = np.arange(start, min(start + size, len(self.ids)))
            problems = {}
            if isinstance(self.values, DiskImages):
                values = self.values.read(rows, problems)
            else:
                values = image_rows(self.values, rows)
            for place, error in problems.items():
                if skipped is None:
                    raise DataError(
                        f"{error}; --on_bad_image=skip leaves such images out"
                    ) from error
                skipped[self.ids[rows[place]]] = error
            sound = np.setdiff1d(np.arange(len(rows)), list(problems))
            if len(sound):
                yield rows[sound], np.asarray(values)[sound]


def from_paths(paths, predictor):
    """Returns the `Inputs` of files and folders, in the order given.

    Args:
        paths: Strings. Images take their path as id.
        predictor: The `Predictor`.

    Raises:
        DataError: A path that does not exist, or does not fit the model.
    """
    paths = [os.path.expanduser(path) for path in paths]
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(paths)} files or folders do not exist: "
            f"{first_five(missing)}"
        )
    inputs, files = [], []

    def add_files():
        if files:
            images = DiskImages(list(files), *_form(predictor))
            inputs.append(Inputs(list(files), images))
            files.clear()

    for path in paths:
        kind = os.path.splitext(path)[1].lower()
        if kind in _ARRAYS:
            # The order is that of the paths.
            add_files()
            inputs.append(_from_array(path, predictor))
        elif predictor.takes_features:
            raise DataError(
                f"{path}: the model takes vectors of "
                f"{predictor.input_shape[0]} features, in .npz or .npy files"
            )
        elif kind in _TEXT:
            raise DataError(
                f"{path} is a table, and the model takes images. Give a table "
                "of images as --candidates_file"
            )
        elif os.path.isdir(path):
            files += [os.path.join(path, file) for file in list_images(path)]
        else:
            files.append(path)
    add_files()
    return inputs


def from_table(path, images, predictor, on_bad_image, **reading):
    """Returns the `Inputs` of a table of candidate sets, in a list.

    Args:
        path: The table.
        images: Folder of its images, or None for the table's own.
        predictor: The `Predictor`.
        on_bad_image: `"error"` or `"skip"`.
        **reading: Further arguments of `data.load_table`.
    """
    reading["class_names"] = predictor.class_names
    table = own_data.load_table(
        path,
        images,
        image_size=None if predictor.takes_features else _form(predictor)[0],
        on_bad_image=on_bad_image,
        **reading,
    )
    values = table.images
    if isinstance(values, DiskImages):
        values = values.with_form(*_form(predictor))
    elif table.kind == "features":
        values = values.reshape(len(values), -1)
    values = _checked(values, table.ids, predictor, path)
    return [Inputs(table.ids, values, table.candidates, path)]


def _form(predictor):
    height, width, channels = predictor.input_shape
    return max(height, width), channels


def _from_array(path, predictor):
    """Reads an .npy file, or an .npz file with values and perhaps ids."""
    name, ids = "features" if predictor.takes_features else "images", None
    if path.lower().endswith(".npz"):
        arrays = tables.read_npz(path, (name, "ids"))
        if name not in arrays:
            raise DataError(
                f"{path}: there is no array {name!r}, which the model takes."
            )
        values, ids = arrays[name], arrays.get("ids")
    else:
        try:
            values = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from error
    if ids is None:
        ids = [str(row) for row in range(len(values))]
    else:
        ids = check_ids(path, ids, len(values))
    if name == "images" and values.ndim == 3:
        values = values[..., None]
    return Inputs(ids, _checked(values, ids, predictor, path), None, path)


def _checked(values, ids, predictor, path):
    """Returns values if they have the form that the model takes."""
    if isinstance(values, DiskImages):
        return values
    try:
        if predictor.takes_features:
            values = validation.validate_features(values, ids)
            values = values.reshape(len(values), -1)
        else:
            values = validation.validate_images(values, ids)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    if values.shape[-1] != predictor.input_shape[-1]:
        what = "features" if predictor.takes_features else "channels"
        raise DataError(
            f"{path}: the model takes {predictor.input_shape[-1]} {what}. "
            f"Received: {values.shape[-1]} {what}"
        )
    return values
