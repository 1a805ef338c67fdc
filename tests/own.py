"""A folder of small pictures with a table, as somebody might have them."""

import csv
import importlib.util
import pathlib

_EXAMPLE = pathlib.Path(__file__).parent.parent / "examples" / "make_folder.py"
_spec = importlib.util.spec_from_file_location("make_folder", _EXAMPLE)
_make_folder = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_make_folder)

NAMES = tuple(_make_folder.NAMES)
write_folder = _make_folder.write_folder


def write_rows(path, rows, delimiter=","):
    """Writes a CSV file, the header first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def read_rows(path):
    """Reads a CSV file as a list of dicts."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
