"""The images of a folder, and which of them the ids of a table mean."""

import bisect
import dataclasses
import os
import re

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.messages import nearest
from alim_keras.data.sources import id_rules
from alim_keras.data.sources.id_rules import SUFFIXES
from alim_keras.data.tables.table import is_clean
from alim_keras.errors import DataError

_DIGITS = re.compile("[0-9]+")
# Near names are looked for among this many neighbours in the alphabet.
_NEIGHBOURS = 500


@dataclasses.dataclass(frozen=True, eq=False)
class ImageListing:
    """The images below a folder.

    Attributes:
        folder: String.
        files: List of strings, paths relative to the folder with forward
            slashes, in natural order ("2.png" before "10.png").
        class_names: Tuple of strings in natural order where each image lies
            in one of at least two folders directly below; else None.
        classes: int64 `(len(files),)`, the class folder of each; else None.
        num_hidden: How many hidden files and folders were passed over.
        num_others: How many other files were passed over.
        others: Tuple of the first five of these.
    """

    folder: str
    files: list
    class_names: tuple = None
    classes: np.ndarray = None
    num_hidden: int = 0
    num_others: int = 0
    others: tuple = ()

    def __len__(self):
        return len(self.files)


def natural(text):
    """Returns a key that sorts numbers in names by their value."""
    return f"{_DIGITS.sub(_sortable, text.casefold())}\0{text}"


def _sortable(match):
    digits = match[0].lstrip("0")
    return f"{len(digits):03}{digits}"


def list_images(folder):
    """Returns the images below a folder, however deep.

    Hidden files and folders (`.DS_Store`, `._x`) are passed over, links are
    followed, other files are counted. Nothing is opened.

    Args:
        folder: Path.

    Returns:
        An `ImageListing`.

    Raises:
        DataError: The folder is missing or holds no image.

    Example:

    >>> list_images("photos").files[:2]
    ['cats/2.png', 'cats/10.png']
    """
    folder = os.fspath(folder)
    found, others, hidden = {}, [], 0
    todo, seen = [("", folder)], set()
    while todo:
        prefix, place = todo.pop()
        names, folders = [], []
        try:
            here = os.stat(place)
            if (here.st_dev, here.st_ino) in seen:
                # A link to a folder around it.
                continue
            seen.add((here.st_dev, here.st_ino))
            with os.scandir(place) as entries:
                for entry in entries:
                    name = entry.name
                    if name.startswith("."):
                        hidden += 1
                    elif name.lower().endswith(SUFFIXES) and not entry.is_dir(
                        follow_symlinks=False
                    ):
                        names.append(name)
                    elif entry.is_dir():
                        folders.append((f"{prefix}{name}/", entry.path))
                    else:
                        others.append(prefix + name)
        except OSError as error:
            raise DataError(
                f"{place}: cannot be listed: {error.strerror}; give a folder "
                "of images"
            ) from error
        todo.extend(folders)
        if names:
            found[prefix] = sorted(names, key=natural)
    order = sorted(found, key=lambda one: [natural(p) for p in one.split("/")])
    files = [prefix + name for prefix in order for name in found[prefix]]
    strange = [one for one in files if not is_clean(one)]
    if strange:
        raise DataError(
            f"{folder}: the names of {len(strange)} images are no UTF-8 text: "
            f"{first_five([ascii(one) for one in strange[:6]])}; rename them"
        )
    others = tuple(sorted(others, key=natural))
    if not files:
        kinds = " ".join(one[1:] for one in SUFFIXES)
        was = f"{len(others)} other files: {first_five(others)}"
        raise DataError(
            f"{folder}: no images in this folder or below. Expected files "
            f"ending in {kinds}. Received: "
            f"{was if others else 'no files'}"
        )
    class_names = classes = None
    if len(order) > 1 and all(one.count("/") == 1 for one in order):
        class_names = tuple(one[:-1] for one in order)
        sizes = [len(found[one]) for one in order]
        classes = np.repeat(np.arange(len(order), dtype=np.int64), sizes)
    return ImageListing(
        folder, files, class_names, classes, hidden, len(others), others[:5]
    )


def match_ids(ids, images, where="the table", keep_missing=False):
    """Finds the file that each id of a table means.

    One rule holds for all ids, the first that finds every one: the id is the
    path in the folder; or that without its ending; or the file name in
    whatever folder; or the file name without folder and ending; or the file
    name behind the code that Label Studio gives to uploads; or the path in the
    folder behind folders that all ids begin with. A rule that leaves
    two files for an id, or one file for two ids, does not count. Nor does one
    that takes `train/1.jpg` for `test/1.jpg`: where the id and the file both
    have folders, one must be the end of the other, as in
    `photos/train/1.jpg`. Positions never matter.

    Args:
        ids: Sequence of N strings.
        images: An `ImageListing`, or the folder to list.
        where: String, the table's name for messages.
        keep_missing: Whether an id that means no file by any rule is returned
            as it is, which is no file of the listing; else, and where no id
            has one, it is an error.

    Returns:
        A pair: a list of N strings, relative to the folder, and the rule as
        a sentence for people.

    Raises:
        DataError: Ids without a file, with both counts, the first five and
            near names; or two spellings of one file.

    Example:

    >>> match_ids(["cats/10", "cats/2"], "photos")
    (['cats/10.png', 'cats/2.png'], 'each id is a path without its ending')
    """
    if not isinstance(images, ImageListing):
        images = list_images(images)
    files = images.files
    spelled = list(map(str, ids))
    ids, listed = id_rules.comparable(spelled, files, images.folder, where)
    tried = []
    for text, of_id, of_file in id_rules.RULES:
        rows, num_wrong = id_rules.apply(ids, listed, of_id, of_file)
        if not num_wrong:
            _check_spelling(spelled, rows, files, where)
            return [files[row] for row in rows], text
        tried.append((num_wrong, rows.count(None), of_id, of_file, text, rows))
    for text, of_id, of_file in id_rules.behind_folders(ids):
        rows, num_wrong = id_rules.apply(ids, listed, of_id, of_file)
        if not num_wrong:
            _check_spelling(spelled, rows, files, where)
            return [files[row] for row in rows], text
    *_, of_id, of_file, text, rows = min(tried, key=lambda one: one[0])
    wrong = id_rules.explain(ids, listed, of_id, of_file)
    if keep_missing and len(wrong) < len(set(ids)) and not any(wrong.values()):
        others = id_rules.by_any_rule(wrong, listed)
        if others:
            # That rule for all would leave these out, though they are there.
            raise DataError(
                f"{where}: {len(others)} of {len(set(ids))} ids are written in "
                f"another way than the others, of which {text}: "
                f"{first_five(_pairs(others))}; write all in one way"
            )
        _check_spelling(spelled, rows, files, where)
        pairs = zip(ids, rows, strict=True)
        return [one if row is None else files[row] for one, row in pairs], text
    # Doubt tells more than absence.
    *_, of_id, of_file, _, _ = min(tried, key=lambda one: one[:2])
    wrong = id_rules.explain(ids, listed, of_id, of_file)
    bad = [f"{one} ({why})" if why else one for one, why in wrong.items()]
    near = _nearest(next(iter(wrong)), listed)
    mend = ""
    if len(wrong) < len(set(ids)) and not any(wrong.values()):
        mend = "; --on_bad_image=skip leaves out items without one"
    raise DataError(
        f"{where}: {len(wrong)} of {len(set(ids))} ids have no image of their "
        f"own among the {len(files)} in {images.folder}: {first_five(bad)}"
        f"{near} An id is a path in the folder or a file name, with or "
        f"without its ending, all written in one way{mend}"
    )


def _pairs(files):
    return [f"{one} ({file})" for one, file in files.items()]


def _check_spelling(ids, rows, files, where):
    """Refuses ids that differ and mean one file.

    They would be two items, perhaps with sets that contradict each other.
    """
    if len(set(ids)) == len(set(rows)):
        return
    pairs = [one for one in zip(rows, ids, strict=True) if one[0] is not None]
    first, twice = {}, []
    for row, one in dict.fromkeys(pairs):
        other = first.setdefault(row, one)
        if other != one:
            twice.append(f"{other!r} and {one!r} ({files[row]})")
    if not twice:
        return
    raise DataError(
        f"{where}: {len(twice)} files are named in several ways: "
        f"{first_five(twice)}; write each in one way, so that its rows have "
        "one id"
    )


def unused_images(files, images):
    """Returns how many images of an `ImageListing` are not among `files`.

    Args:
        files: Sequence of paths, as `match_ids` returns.
        images: The `ImageListing`.

    Returns:
        A pair: their number, and a list of the first five.
    """
    used = set(files)
    left = [one for one in images.files if one not in used]
    return len(left), left[:5]


def _nearest(name, files):
    """Returns ", did you mean ...?", looking at the neighbours only."""
    known = sorted(set(map(id_rules.base, files)) if "/" not in name else files)
    place = bisect.bisect(known, name)
    near = known[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]
    return nearest(name, near) or "."
