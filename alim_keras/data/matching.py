"""The images of a folder, and which of them the ids of a table mean."""

import bisect
import collections
import dataclasses
import os
import re
import unicodedata

import numpy as np

from alim_keras.data.checks import check_text
from alim_keras.errors import DataError
from alim_keras.errors import first_five
from alim_keras.errors import nearest

SUFFIXES = tuple(
    ".jpg .jpeg .jpe .png .gif .bmp .webp .tif .tiff .ppm .pgm".split()
)
# Near names are looked for among this many neighbours in the alphabet.
_NEIGHBOURS = 500
# The code that Label Studio puts before the name of an uploaded file, and the
# folder in which it says that they are, wherever they are exported to.
_CODE = re.compile("^[0-9a-f]{8}-")
_UPLOADS = re.compile("(^|/)upload/[0-9]+$")


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
    """

    folder: str
    files: list
    class_names: tuple = None
    classes: np.ndarray = None

    def __len__(self):
        return len(self.files)

    def __iter__(self):
        return iter(self.files)


def natural(text):
    """Returns a key that sorts numbers in names by their value."""

    def sortable(match):
        digits = match[0].lstrip("0")
        return f"{len(digits):03}{digits}"

    return f"{re.sub('[0-9]+', sortable, text.casefold())}\0{text}"


def list_images(folder):
    """Returns the images below a folder, however deep, as an `ImageListing`.

    Hidden files and folders (`.DS_Store`, `._x`) and other files are passed
    over, links are followed. Nothing is opened.

    Raises:
        DataError: The folder is missing or holds no image.

    Example:

    >>> list_images("photos").files[:2]
    ['cats/2.png', 'cats/10.png']
    """
    folder = os.fspath(folder)
    by_folder, others = {}, []
    todo, seen = [("", folder)], set()
    while todo:
        prefix, path = todo.pop()
        names = []
        try:
            status = os.stat(path)
            if (status.st_dev, status.st_ino) in seen:
                # A link to a folder around it.
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(path) as entries:
                for entry in entries:
                    name = entry.name
                    if name.startswith("."):
                        continue
                    if name.lower().endswith(SUFFIXES) and not entry.is_dir(
                        follow_symlinks=False
                    ):
                        names.append(name)
                    elif entry.is_dir():
                        todo.append((f"{prefix}{name}/", entry.path))
                    else:
                        others.append(prefix + name)
        except OSError as error:
            raise DataError(
                f"{path}: cannot be listed: {error.strerror}; give a folder "
                "of images"
            ) from error
        if names:
            by_folder[prefix] = sorted(names, key=natural)
    order = sorted(by_folder, key=lambda p: [natural(n) for n in p.split("/")])
    files = [prefix + name for prefix in order for name in by_folder[prefix]]
    if not files:
        others = sorted(others, key=natural)
        shown = f"{len(others)} other files: {first_five(others)}"
        raise DataError(
            f"{folder}: no images in this folder or below. Expected files "
            f"ending in {' '.join(SUFFIXES)}. Received: "
            f"{shown if others else 'no files'}"
        )
    check_text(folder, "names of images", np.array(files, str))
    class_names = classes = None
    if len(order) > 1 and all(prefix.count("/") == 1 for prefix in order):
        class_names = tuple(prefix[:-1] for prefix in order)
        sizes = [len(by_folder[prefix]) for prefix in order]
        classes = np.repeat(np.arange(len(order), dtype=np.int64), sizes)
    return ImageListing(folder, files, class_names, classes)


def match_ids(ids, images, where="the table", keep_missing=False):
    """Finds the file that each id of a table means.

    One rule holds for all ids, the first that finds every one: the id is the
    path in the folder; or that without its ending; or the file name in
    whatever folder; or the file name without folder and ending; or the file
    name behind the code that Label Studio gives to uploads. A rule that
    leaves two files for an id, or one file for two ids, does not count. Nor
    does one that takes `train/1.jpg` for `test/1.jpg`: where the id and the
    file both have folders, one must be the end of the other, as in
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
    ids, listed = _comparable(spelled, files, images.folder, where)
    tried = []
    for rule in _RULES:
        rows, wrong = _apply(ids, listed, *rule[1:])
        if not wrong:
            break
        tried.append(
            (sum(map(len, wrong.values())), len(wrong), rule, rows, wrong)
        )
    else:
        # The rule that finds most; doubt tells more than absence.
        *_, rule, rows, wrong = min(tried, key=lambda t: (t[1], -t[0]))
    number = len(set(ids))
    is_part = len(wrong) < number and not any(wrong.values())
    if wrong and not (keep_missing and is_part):
        shown = [
            f"{name} ({why})" if why else name for name, why in wrong.items()
        ]
        hint = "--on_bad_image=skip leaves out items without one"
        raise DataError(
            f"{where}: {len(wrong)} of {number} ids have no image of their "
            f"own among the {len(files)} in {images.folder}: "
            f"{first_five(shown)}{_nearest(next(iter(wrong)), listed)} An id "
            "is a path in the folder or a file name, with or without its "
            f"ending, all written in one way{'; ' + hint if is_part else ''}"
        )
    others = {}
    for _, of_id, of_file in _RULES:
        places = dict(zip(map(of_file, listed), listed)) if wrong else {}
        for name in wrong:
            file = places.get(of_id(name))
            if file is not None and not _is_elsewhere(name, file):
                others.setdefault(name, f"{name} ({file})")
    if others:
        # That rule for all would leave these out, though they are there.
        raise DataError(
            f"{where}: {len(others)} of {number} ids are written in another "
            f"way than the others, of which {rule[0]}: "
            f"{first_five(list(others.values()))}; write all in one way"
        )
    _check_spelling(spelled, rows, files, where)
    pairs = zip(ids, rows, strict=True)
    return [id if row is None else files[row] for id, row in pairs], rule[0]


def _apply(ids, files, of_id, of_file):
    """Returns each id's row in `files`, or None; and why ids have none."""
    names = list(map(of_file, files))
    places = dict(zip(names, range(len(files)), strict=True))
    keys = list(map(of_id, ids))
    rows = list(map(places.get, keys))
    several = collections.defaultdict(list)
    if len(places) < len(names):
        for name, file in zip(names, files):
            several[name].append(file)
    is_path = of_id in (_same, _without_ending)
    wrong, owners = {}, {}
    is_clear = not several and None not in rows
    if is_clear and is_path and len(set(rows)) == len(set(ids)):
        return rows, wrong
    for name, key, row in zip(ids, keys, rows):
        if row is None:
            wrong[name] = ""
        elif len(several.get(key, ())) > 1:
            wrong[name] = f"could be {several[key][0]} or {several[key][1]}"
        elif owners.setdefault(row, name) != name:
            wrong[name] = f"means {files[row]}, as does {owners[row]}"
        elif not is_path and "/" in name and _is_elsewhere(name, files[row]):
            wrong[name] = f"is in another folder than {files[row]}"
    return rows, wrong


def _check_spelling(ids, rows, files, where):
    """Raises for ids that differ and mean one file.

    They would be two items, perhaps with sets that contradict each other.
    """
    if len(set(ids)) == len(set(rows)):
        return
    first, twice = {}, []
    for row, name in dict.fromkeys(zip(rows, ids, strict=True)):
        if row is not None and first.setdefault(row, name) != name:
            twice.append(f"{first[row]!r} and {name!r} ({files[row]})")
    if twice:
        raise DataError(
            f"{where}: {len(twice)} files are named in several ways: "
            f"{first_five(twice)}; write each in one way, so that its rows "
            "have one id"
        )


def _nearest(name, files):
    """Returns "; did you mean ...?", looking at the neighbours only."""
    known = sorted(set(map(_base, files)) if "/" not in name else files)
    place = bisect.bisect(known, name)
    near = known[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]
    return nearest(name, near) or "."


def _comparable(ids, files, folder, where):
    """Returns ids and files as texts, equal where they mean the same."""
    own = os.path.abspath(folder).replace(os.sep, "/") + "/"
    exact = set(files)

    def relative(name):
        name = name.replace("\\", "/").removeprefix(own)
        while name.startswith("./"):
            name = name[2:]
        return name

    def composed(name):
        # With accents as one character; macOS takes them apart.
        return name if name.isascii() else unicodedata.normalize("NFC", name)

    ids = [name if name in exact else relative(name) for name in ids]
    if len(set(map(composed, files))) == len(files):
        ids, files = list(map(composed, ids)), list(map(composed, files))
    stripped = list(map(str.strip, files))
    if stripped != files:
        # Readers of tables take spaces away that are in a file's name.
        ids = list(map(str.strip, ids))
        counts = collections.Counter(stripped)
        twice = sorted(name for name in set(ids) if counts[name] > 1)
        if twice:
            pair = [name for name in files if name.strip() == twice[0]]
            raise DataError(
                f"{where}: {len(twice)} ids could be several files, which "
                f"differ in spaces around their names: {pair[0]!r} or "
                f"{pair[1]!r}; rename one of them"
            )
    return ids, stripped


def _is_elsewhere(name, file):
    """Returns whether an id names another folder than that of a file.

    The one may know more of the way to it than the other: /home/me/cats/1.png
    is cats/1.png.
    """
    named = name.rpartition("/")[0].strip("/")
    folder = file.rpartition("/")[0]
    if not named or not folder or _UPLOADS.search(named):
        return False
    named, folder = f"/{named}", f"/{folder}"
    return not (named.endswith(folder) or folder.endswith(named))


def _same(name):
    return name


def _without_ending(name):
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    return name[: -len(ending)] if ending in SUFFIXES else name


def _base(name):
    return name.rpartition("/")[2]


def _stem(name):
    return _without_ending(_base(name))


def _uploaded(name):
    return _CODE.sub("", _base(name))


_RULES = (
    ("each id is the path of a file in the folder", _same, _same),
    ("each id is a path without its ending", _same, _without_ending),
    ("each id is a file name, in whatever folder", _base, _base),
    ("each id is a file name, without folder and ending", _stem, _stem),
    ("each id is a file name behind an upload's code", _uploaded, _base),
)
