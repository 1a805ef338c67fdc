"""The rules by which an id of a table means a file of a folder."""

import collections
import os
import re
import unicodedata

from alim_keras.errors import DataError

SUFFIXES = (
    ".jpg",
    ".jpeg",
    ".jpe",
    ".png",
    ".gif",
    ".bmp",
    ".webp",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
)
# What Label Studio puts before the name of a file that is uploaded.
_CODE = re.compile("^[0-9a-f]{8}-")
# And where it says that they are, wherever they are exported to.
_UPLOADS = re.compile("(^|/)upload/[0-9]+$")


def comparable(ids, files, folder, where):
    """Returns ids and files as texts that are equal where they mean the same.

    Args:
        ids: Strings; paths in the folder, absolute or with backslashes too.
        files: Strings, paths in the folder.
        folder: String.
        where: String, where the ids are from, for messages.

    Returns:
        Two lists of strings.

    Raises:
        DataError: Ids that could be two files, but for spaces around them.
    """
    own = os.path.abspath(folder).replace(os.sep, "/") + "/"
    exact = set(files)
    ids = [one if one in exact else _relative(one, own) for one in ids]
    composed = list(map(_composed, files))
    if len(set(composed)) == len(files):
        ids, files = list(map(_composed, ids)), composed
    stripped = list(map(str.strip, files))
    if stripped != files:
        # Readers of tables take spaces away that are in a file's name.
        ids = list(map(str.strip, ids))
        twice = set(ids) & _twice(stripped)
        if twice:
            pair = [one for one in files if one.strip() == min(twice)]
            raise DataError(
                f"{where}: {len(twice)} ids could be several files, which "
                f"differ in spaces around their names: {pair[0]!r} or "
                f"{pair[1]!r}; rename one of them"
            )
    return ids, stripped


def _relative(name, own):
    """Returns an id as paths in a listing are written."""
    name = name.replace("\\", "/").removeprefix(own)
    while name.startswith("./"):
        name = name[2:]
    return name


def _composed(name):
    """Returns a name with accents as one character; macOS takes them apart."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _without_ending(name):
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    return name[: -len(ending)] if ending in SUFFIXES else name


def base(name):
    """Returns a path's last part."""
    return name.rpartition("/")[2]


def _stem(name):
    return _without_ending(base(name))


def _uploaded(name):
    return _CODE.sub("", base(name))


def _same(name):
    return name


RULES = (
    ("each id is the path of a file in the folder", _same, _same),
    ("each id is a path without its ending", _same, _without_ending),
    ("each id is a file name, in whatever folder", base, base),
    ("each id is a file name, without folder and ending", _stem, _stem),
    ("each id is a file name behind an upload's code", _uploaded, base),
)


def behind_folders(ids):
    """Yields rules as `RULES` that take away folders before all the ids.

    For paths of another machine, where file names repeat in the folders below.
    """
    common = os.path.commonprefix(ids)
    ends = [place for place, sign in enumerate(common) if sign == "/"]
    for end in ends:
        prefix = common[: end + 1]

        def of_id(one, prefix=prefix):
            return one.removeprefix(prefix)

        text = f"each id is a path behind {prefix}"
        yield text, of_id, _same
        yield f"{text}, without its ending", of_id, _without_ending


def by_any_rule(ids, files):
    """Returns the file that some rule finds for an id, as a dict."""
    found = {}
    for _, of_id, of_file in RULES:
        names = dict(zip(map(of_file, files), files, strict=True))
        for one in ids:
            file = names.get(of_id(one))
            if file is not None and not _is_elsewhere(one, file):
                found.setdefault(one, file)
    return found


def apply(ids, files, of_id, of_file):
    """Returns the row in `files` of each id, and how many ids have none.

    Rows are None, or the last of several, where an id has not just one.
    """
    names = list(map(of_file, files))
    rows = dict(zip(names, range(len(files)), strict=True))
    found = list(map(rows.get, map(of_id, ids)))
    num_wrong = found.count(None)
    if len(rows) < len(names):
        twice = _twice(names)
        num_wrong += sum(of_id(one) in twice for one in ids)
    if not num_wrong:
        # Ids that come twice mean the same file; others must not.
        num_wrong = len(set(ids)) - len(set(found))
    if not num_wrong and of_id not in (_same, _without_ending):
        pairs = zip(ids, found, strict=True)
        num_wrong = sum(
            "/" in one and _is_elsewhere(one, files[row]) for one, row in pairs
        )
    return found, num_wrong


def _is_elsewhere(one, file):
    """Returns whether an id names another folder than that of a file.

    The one may know more of the way to it than the other: /home/me/cats/1.png
    is cats/1.png.
    """
    named = one.rpartition("/")[0].strip("/")
    folder = file.rpartition("/")[0]
    if not named or not folder or _UPLOADS.search(named):
        return False
    named, folder = f"/{named}", f"/{folder}"
    return not (named.endswith(folder) or folder.endswith(named))


def _twice(names):
    counts = collections.Counter(names)
    return {name for name, count in counts.items() if count > 1}


def explain(ids, files, of_id, of_file):
    """Returns a dict of ids without a file of their own, to why; "" is none."""
    places, owners, wrong = {}, {}, {}
    for name, file in zip(map(of_file, files), files, strict=True):
        places.setdefault(name, []).append(file)
    for one in ids:
        found = places.get(of_id(one), ())
        if not found:
            wrong[one] = ""
        elif len(found) > 1:
            wrong[one] = f"could be {found[0]} or {found[1]}"
        elif owners.setdefault(found[0], one) != one:
            wrong[one] = f"means {found[0]}, as does {owners[found[0]]}"
        elif of_id is not _same and _is_elsewhere(one, found[0]):
            wrong[one] = f"is in another folder than {found[0]}"
    return wrong
