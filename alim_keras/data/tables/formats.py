"""Which reader a file needs, by its suffix."""

import os

from alim_keras.data.messages import first_five
from alim_keras.data.tables import delimited
from alim_keras.data.tables import huggingface
from alim_keras.data.tables import json_tables
from alim_keras.data.tables import parquet
from alim_keras.data.tables.class_names import check_names
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

_KINDS = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".txt": "delimited",
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".json": "json",
    ".parquet": "parquet",
    ".npz": "arrays",
    ".npy": "arrays",
}
_READERS = {
    "delimited": delimited.read,
    "lines": json_tables.read_lines,
    "json": json_tables.read,
    "parquet": parquet.read,
    "huggingface": huggingface.read,
}


def kind_of(path):
    """Returns what a path holds, or refuses it."""
    if os.path.isdir(path):
        if huggingface.is_dataset(path):
            return "huggingface"
        raise DataError(
            f"{path}: is a folder, not a table; name a file in it "
            f"({', '.join(_KINDS)}), or a folder that HuggingFace datasets "
            "saved"
        )
    if not os.path.exists(path):
        raise DataError(f"{path}: there is no such file")
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in _KINDS:
        raise DataError(
            f"{path}: a file of one of these kinds was expected: "
            f"{', '.join(_KINDS)}. Received: suffix={suffix!r}"
        )
    if os.path.getsize(path) == 0:
        raise DataError(f"{path}: the file is empty; write it again")
    return _KINDS[suffix]


def table(path, kind, findings):
    """Returns the `Table` of a file of some kind."""
    try:
        return _READERS[kind](path, findings)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read: {error.strerror or error}"
        ) from error


def settle_names(table, class_names, findings):
    """Returns the class names to use where the file has its own, too."""
    if table.class_names is None:
        return class_names
    try:
        in_file = check_names(table.class_names)
    except ConfigError as error:
        raise DataError(f"{table.path}: in the file's {error}") from error
    if class_names in (None, in_file):
        if class_names is None:
            findings.note(
                f"{len(in_file)} class names stand in the file: "
                f"{first_five(in_file)}"
            )
        return in_file
    raise DataError(
        f"{table.path}: the class names of the file, "
        f"{first_five(in_file)}, are not those given, "
        f"{first_five(class_names)}; leave --class_names out"
    )
