"""The images of a folder, and which of them the ids of a table mean."""

import collections
import dataclasses
import functools
import os
import re
import unicodedata

import numpy as np

from alim_keras.data.checks import check_names
from alim_keras.errors import DataError
from alim_keras.errors import first_five

SUFFIXES = tuple(
    ".jpg .jpeg .jpe .png .gif .bmp .webp .tif .tiff .ppm .pgm".split()
)
# The folder in which Label Studio says that uploaded files are, wherever they
# are exported to; before their names it puts a code.
_UPLOADS = re.compile("(^|/)upload/[0-9]+$")
_ENDING = rf"\.(?i:{'|'.join(suffix[1:] for suffix in SUFFIXES)})\Z"


def _without(pattern):
    """Returns a function that leaves out of a path what a pattern matches."""
    return functools.partial(re.compile(pattern).sub, "")


_name = _without("^.*/")
_stem = _without(f"^.*/|{_ENDING}")
_uploaded = _without("^(.*/)?([0-9a-f]{8}-)?")
_number = _without(f"^.*[-/]|{_ENDING}")
# What an id is; what is compared of ids, and of files.
_RULES = (
    ("each id is the path of a file in the folder", str, str),
    ("each id is a path without its ending", str, _without(_ENDING)),
    ("each id is a file name, in whatever folder", _name, _name),
    ("each id is a file name, without folder and ending", _stem, _stem),
    ("each id is a file name behind an upload's code", _uploaded, _name),
    ("each id is the number at the end of a file name", str, _number),
)


@dataclasses.dataclass(frozen=True, eq=False)
class ImageListing:
    """The images below a folder.

    Attributes:
        folder: String.
        files: List of strings, paths relative to the folder with forward
            slashes, in natural order ("2.png" before "10.png").
        class_names: Tuple of strings in natural order where each image lies
            in one of at least two folders directly below; else None.
    """

    folder: str
    files: list
    class_names: tuple = None


def natural(text):
    """Returns a key that sorts numbers in names by their value."""

    def sortable(match):
        digits = match[0].lstrip("0")
        return f"{len(digits):03}{digits}"

    return f"{re.sub('[0-9]+', sortable, text.casefold())}\0{text}"


def list_images(folder):
    """Returns the images below a folder, however deep, as an `ImageListing`.

    Hidden files and folders, other files and the folder `_unlabeled` of
    FiftyOne are passed over, links are followed. Nothing is opened.

    Raises:
        DataError: The folder is missing or holds no image.

    Example:

    >>> list_images("photos").files[:2]
    ['cats/2.png', 'cats/10.png']
    """
    folder = os.fspath(folder)
    by_folder, seen = {}, set()

    def refuse(error):
        raise DataError(
            f"{error.filename}: cannot be listed: {error.strerror}; give a "
            "folder of images"
        ) from error

    tree = os.walk(folder, onerror=refuse, followlinks=True)
    for path, folders, names in tree:
        status = os.stat(path)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()  # A link to a folder around it.
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = [n for n in folders if n[0] != "." and n != "_unlabeled"]
        names = [name for name in names if name[0] != "."]
        images = [n for n in names if n.lower().endswith(SUFFIXES)]
        if images:
            prefix = os.path.relpath(path, folder).replace(os.sep, "/") + "/"
            prefix = prefix.removeprefix("./")
            by_folder[prefix] = sorted(images, key=natural)
    order = sorted(by_folder, key=lambda p: [natural(n) for n in p.split("/")])
    files = [prefix + name for prefix in order for name in by_folder[prefix]]
    if not files:
        raise DataError(
            f"{folder}: no images in this folder or below. Expected files "
            f"ending in {' '.join(SUFFIXES)}"
        )
    check_names(np.array(files, str), folder, "names of images")
    class_names = None
    if len(order) > 1 and all(prefix.count("/") == 1 for prefix in order):
        class_names = tuple(prefix[:-1] for prefix in order)
    return ImageListing(folder, files, class_names)


def match_ids(ids, images, where="the table", keep_missing=False):
    """Finds the file that each id of a table means.

    One rule holds for all ids, the first of `_RULES` that finds every one: a
    path, with or without its ending; a file name, with or without; a name
    behind the code that Label Studio gives to uploads; or the number behind
    the last "-", as peerannot has it. No rule leaves two files for an id, or
    one for two ids. Where the id and the file both have folders, one must be
    the end of the other, as in `photos/train/1.jpg`.

    Args:
        ids: Sequence of N strings.
        images: An `ImageListing`, or the folder to list.
        where: String, the table's name for messages.
        keep_missing: Whether an id that means no file by any rule is returned
            as it is; else, and where no id has a file, it is an error.

    Returns:
        A list of N strings, relative to the folder, and the rule in words.

    Raises:
        DataError: Ids without a file of their own.

    Example:

    >>> match_ids(["cats/10", "cats/2"], "photos")
    (['cats/10.png', 'cats/2.png'], 'each id is a path without its ending')
    """
    if not isinstance(images, ImageListing):
        images = list_images(images)
    files, ids = images.files, list(map(str, ids))
    folder = os.path.abspath(images.folder).replace(os.sep, "/") + "/"
    plain_ids = [_plain(name, folder) for name in ids]
    plain_files = [_plain(name, folder) for name in files]
    may_mean, best = {}, None
    for rule, of_id, of_file in _RULES:
        rows = collections.defaultdict(list)
        for row, file in enumerate(plain_files):
            rows[of_file(file)].append(row)
        owners, found, wrong = {}, {}, set()
        for name, plain in zip(ids, plain_ids):
            options = rows.get(of_id(plain), ())
            options = [row for row in options if _fits(plain, plain_files[row])]
            if len(options) != 1 or owners.setdefault(options[0], name) != name:
                wrong.add(name)
            if options:
                found[name] = files[options[0]]
                may_mean[name] = " or ".join(files[row] for row in options[:2])
        if best is None or len(wrong) < len(best[0]):
            best = wrong, found, rule
        if not wrong:
            break
    wrong, found, rule = best
    hint, is_some = "", len(wrong) < len(set(ids))
    if is_some and wrong.isdisjoint(may_mean):
        hint = "; --on_bad_image=skip leaves out items without one"
    if not wrong or hint and keep_missing:
        return [found.get(name, name) for name in ids], rule
    shown = [
        f"{name} ({may_mean[name]})" if name in may_mean else name
        for name in dict.fromkeys(ids)
        if name in wrong
    ]
    raise DataError(
        f"{where}: {len(wrong)} of {len(set(ids))} ids have no image of their "
        f"own among the {len(files)} in {images.folder}: {first_five(shown)}. "
        "An id is a path in the folder or a file name, with or without its "
        f"ending, all written in one way, such as {first_five(files[:2])}{hint}"
    )


def _fits(name, file):
    """Returns whether one may name more of the way: /me/cats/1 is cats/1."""
    named, folder = name.rpartition("/")[0].strip("/"), file.rpartition("/")[0]
    if not named or not folder or _UPLOADS.search(named):
        return True
    named, folder = f"/{named}", f"/{folder}"
    return named.endswith(folder) or folder.endswith(named)


def _plain(name, folder):
    """Returns a path as tables may write it, below the folder."""
    # macOS takes accents apart; readers of tables take spaces away.
    name = unicodedata.normalize("NFC", name).strip().replace("\\", "/")
    return re.sub(r"^(\./)+", "", name.removeprefix(folder))
