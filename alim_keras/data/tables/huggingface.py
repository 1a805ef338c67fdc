"""Reading a folder that HuggingFace `datasets.save_to_disk` wrote."""

import os

from alim_keras.data.messages import first_five
from alim_keras.data.messages import one_line
from alim_keras.data.tables.table import Column
from alim_keras.data.tables.table import Table
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

FILES = ("dataset_info.json", "dataset_dict.json", "state.json")


def is_dataset(folder):
    """Returns whether a folder looks like one that `datasets` saved."""
    return any(os.path.isfile(os.path.join(folder, one)) for one in FILES)


class EncodedImages:
    """The images of a dataset as encoded bytes, read when asked for."""

    def __init__(self, rows, name, index):
        self._rows = rows
        self._name = name
        self._index = index

    def __len__(self):
        return len(self._index)

    def __getitem__(self, item):
        cell = self._rows[int(self._index[item])][self._name]
        if cell is not None and cell.get("bytes") is not None:
            return cell["bytes"]
        path = None if cell is None else cell.get("path")
        try:
            with open(path or "", "rb") as file:
                return file.read()
        except OSError as error:
            raise DataError(
                f"Row {int(self._index[item])} of the dataset has no image: "
                f"neither bytes nor a file at {path!r}"
            ) from error

    def select(self, kept):
        """Returns the images of some rows."""
        index = [self._index[row] for row in kept]
        return EncodedImages(self._rows, self._name, index)


def read(path, findings):
    """Returns the `Table` of a dataset, with its images and class names."""
    try:
        import datasets
    except ImportError as error:
        raise EnvironmentLacksError(
            f"{path}: reading a HuggingFace dataset needs the package "
            "datasets; pip install datasets, or save the table as .parquet"
        ) from error
    try:
        found = datasets.load_from_disk(path)
    except Exception as error:
        raise DataError(
            f"{path}: is no sound HuggingFace dataset ({one_line(error)})"
        ) from error
    if isinstance(found, dict):
        # That of training is what is most often meant.
        first = "train" if "train" in found else next(iter(found), "")
        raise DataError(
            f"{path}: holds the splits {first_five(sorted(found))}; name the "
            f"folder of one of them, {os.path.join(path, first)}"
            if found
            else f"{path}: the dataset is empty"
        )
    if not len(found):
        raise DataError(f"{path}: the table is empty, it holds no rows")
    features = dict(found.features)
    pictures = [n for n, f in features.items() if _is(f, "Image")]
    if len(pictures) > 1:
        raise DataError(
            f"{path}: the columns {first_five(pictures)} all hold images; "
            "keep one of them"
        )
    names = [name for name in features if name not in pictures]
    table = Table(
        path, tuple(names), lambda n: _column(found, features, n), len(found)
    )
    if pictures:
        raw = found.cast_column(pictures[0], datasets.Image(decode=False))
        table.images = EncodedImages(raw, pictures[0], range(len(found)))
        findings.note(f"images from the column {pictures[0]!r}")
    table.class_names = _class_names(path, features)
    return table


def _is(feature, kind):
    return type(feature).__name__ == kind


def _inner(feature):
    """Returns the feature inside a list, or the feature itself."""
    if isinstance(feature, (list, tuple)) and len(feature) == 1:
        return feature[0]
    return getattr(feature, "feature", feature)


def _class_names(path, features):
    """Returns the names of the ClassLabel columns, or refuses two lists."""
    found = {
        tuple(_inner(feature).names): name
        for name, feature in features.items()
        if _is(_inner(feature), "ClassLabel")
    }
    if len(found) > 1:
        raise DataError(
            f"{path}: the columns {first_five(list(found.values()))} have "
            "different classes; keep one of them"
        )
    return next(iter(found), None)


def _column(dataset, features, name):
    """Returns a column; numbers of a ClassLabel are put in as names."""
    cells = list(dataset[name])
    inner = _inner(features[name])
    if not _is(inner, "ClassLabel"):
        return Column.of(cells)
    names = inner.names

    def named(value):
        if isinstance(value, (list, tuple)):
            return [named(one) for one in value]
        inside = type(value) is int and 0 <= value < len(names)
        return names[value] if inside else value

    return Column.of([named(cell) for cell in cells])
