"""Checks of labels and candidate sets before anything is trained on them.

A wrong label is silent further on (`one_hot` of an unknown class is an empty
set), so everything is checked here, once, with the row and the remedy named.
"""

import zlib

import numpy as np

from alim_keras.errors import DataError
from alim_keras.errors import check_number
from alim_keras.errors import first_five
from alim_keras.errors import first_rows

# Rows of a multi-hot matrix are handled in blocks of about this many entries.
_BLOCK = 1 << 24
# Fills up rows of class numbers that are shorter than the longest.
PADDING = -1


def default_ids(num_examples, split="train"):
    """Returns "train_00000", "train_00001" and so on as a string array.

    Numbers have at least five digits and one length, so that the order of
    the ids is the order of the numbers.
    """
    return numbered_ids(range(num_examples), split)


def numbered_ids(places, split):
    """Returns the ids of some official places, as a string array."""
    digits = max(5, len(str(max(places, default=0))))
    return np.array([f"{split}_{place:0{digits}d}" for place in places], str)


def row_ids(num_rows):
    """Returns "row_00000" and so on: ids for rows of a file without ids.

    No data set has such ids, so sets with them are never joined to images by
    accident; see `CandidateSets.with_ids`.
    """
    return default_ids(num_rows, "row")


def rows_at_once(num_classes):
    """Returns how many multi-hot rows are handled at once."""
    return max(1, _BLOCK // max(num_classes, 1))


def class_type(num_classes):
    """Returns the type in which class numbers are kept."""
    return np.int16 if num_classes <= np.iinfo(np.int16).max else np.int32


def multi_hot_to_lists(blocks, num_classes, ids):
    """Returns the classes of multi-hot rows as (indptr, indices).

    Args:
        blocks: Arrays of rows, of bool, or of numbers that are 0 or 1.
        num_classes: Integer C, the width of each.
        ids: Strings, the ids of the rows, or None; for messages.
    """
    sizes, members, start = [np.zeros(0, np.int64)], [], 0
    for block in blocks:
        if block.dtype.kind != "b":
            _check_zero_one(block, start, ids)
        rows, columns = np.nonzero(block)
        sizes.append(np.bincount(rows, minlength=len(block)))
        members.append(columns.astype(class_type(num_classes)))
        start += len(block)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return indptr, np.concatenate(members) if members else np.zeros(0, int)


def check_lists(indptr, indices, ids, num_classes, source):
    """Raises `DataError` for sets that are no CSR lists or are empty."""
    if indptr.ndim != 1 or not len(indptr) or indptr[0]:
        raise DataError("`indptr` must be a list that begins with 0")
    if indptr[-1] != len(indices) or np.any(np.diff(indptr) < 0):
        raise DataError(
            "`indptr` must rise to the number of `indices`. Received: "
            f"{indptr[-1]}, {len(indices)} indices"
        )
    empty = np.flatnonzero(np.diff(indptr) == 0)
    if len(empty):
        raise DataError(
            f"{source}: {len(empty)} candidate sets are empty, ids "
            f"{first_five(ids[empty[:6]])}; give each at least one class"
        )
    wrong = (indices < 0) | (indices >= num_classes)
    # A row's first class may be below the last class of the row before.
    inner = np.ones(len(indices), bool)
    inner[indptr[:-1]] = False
    wrong[1:] |= inner[1:] & (indices[1:] <= indices[:-1])
    if wrong.any():
        rows = np.searchsorted(indptr, np.flatnonzero(wrong), "right") - 1
        raise DataError(
            f"{source}: classes must lie in 0..{num_classes - 1} and "
            f"rise within a set. Received: others in "
            f"{first_rows(np.unique(rows), ids)}"
        )


def _check_zero_one(block, start, ids):
    wrong = ~((block == 0) | (block == 1))
    if not wrong.any():
        return
    rows, columns = np.nonzero(wrong)
    value = block[rows[0], columns[0]]
    shown = "blank (NaN)" if np.isnan(value) else f"{value}"
    raise DataError(
        f"Multi-hot candidate sets must hold only 0 and 1: {len(rows)} "
        f"other values, {first_rows(np.unique(rows) + start, ids)}; the first "
        f"is {shown} in column {columns[0]}; round weights to 0 or 1, or "
        "pass form='ids' if these are class numbers"
    )


def to_array(values):
    """Returns a numpy array of a list, an array or any backend's tensor."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values.numpy() if hasattr(values, "numpy") else values)


def class_numbers(values, rows, ids):
    """Returns numbers as class numbers.

    Args:
        values: Numbers `(n,)`, whole.
        rows: Integers `(n,)`, the row of each, for messages.
        ids: Strings, the ids of the rows, or None.

    Returns:
        int64 `(n,)`.

    Raises:
        DataError: Blanks and values that are not whole numbers.
    """
    values = to_array(values)
    if values.dtype.kind not in "iuf":
        raise DataError(
            "Class numbers must be whole numbers. Received: "
            f"dtype={values.dtype}"
        )
    broken = np.flatnonzero(values != np.round(values))
    if len(broken):
        value = values[broken[0]]
        shown = "blank (NaN)" if np.isnan(value) else f"{value}"
        raise DataError(
            f"{len(broken)} class numbers are not whole, "
            f"{first_rows(np.unique(rows[broken]), ids)}; the first is "
            f"{shown}; use integers from 0, and -1 to fill a row up"
        )
    return values.astype(np.int64)


def check_range(numbers, rows, num_classes, ids, lowest):
    """Raises for numbers outside `lowest`..C-1, with a hint where it helps."""
    wrong = np.flatnonzero((numbers < lowest) | (numbers >= num_classes))
    if not len(wrong):
        return
    real = numbers[numbers != PADDING] if lowest < 0 else numbers
    hint = ""
    if real.min() == 1 and real.max() == num_classes:
        hint = "; they look 1-based: do the labels start at 0?"
    raise DataError(
        f"{len(wrong)} labels are outside 0..{num_classes - 1}, "
        f"{first_rows(np.unique(rows[wrong]), ids)}; the first is "
        f"{numbers[wrong[0]]}{hint}"
    )


def check_ids(path, ids, count):
    """Returns the ids of a file as a list of strings.

    Raises:
        DataError: Another number than `count`, a blank id, or one that comes
            twice.
    """
    ids = [str(name).strip() for name in np.asarray(ids).reshape(-1).tolist()]
    if len(ids) != count or not all(ids) or len(set(ids)) < len(ids):
        raise DataError(
            f"{path}: {count} ids were expected, all different and none blank. "
            f"Received: {len(ids)} ids, {len(set(ids))} different"
        )
    return ids


def check_text(source, kind, texts):
    """Raises for strings with half of a surrogate pair: no file holds them.

    Args:
        source: String, where they are from, for the message.
        kind: String, such as "ids", likewise.
        texts: Strings, an array `(n,)`.

    Raises:
        DataError: Some are no text.
    """
    if not texts.size or not texts.dtype.itemsize:
        return
    points = np.ascontiguousarray(texts).view(np.uint32)
    if points.max(initial=0) < 0xD800:
        return  # As nearly always, and quick for a million.
    points = points.reshape(len(texts), -1)
    rows = np.flatnonzero((points >> 11 == 0xD800 >> 11).any(1))
    if len(rows):
        shown = [ascii(str(text)) for text in texts[rows[:6]]]
        raise DataError(
            f"{source}: {len(rows)} {kind} are no UTF-8 text: "
            f"{first_five(shown)}; rename them"
        )


def generator(seed, name):
    """Returns a `numpy.random.Generator` (PCG64) for one use of a seed.

    The name keeps the uses of one seed apart: the candidate sets, the subset
    and the held-out part do not share draws.

    Args:
        seed: Integer >= 0.
        name: String, the use.
    """
    seed = check_number("seed", seed, 0, whole=True)
    words = [seed, zlib.crc32(name.encode())]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
