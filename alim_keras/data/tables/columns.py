"""The names by which the columns of a table are known."""

from alim_keras.data.messages import first_five
from alim_keras.errors import DataError

# What an item is called; the second list also says where its image is.
ITEM = ("id", "item", "item_id", "image_id", "name")
IMAGE = ("image", "file", "filename", "file_name", "path", "image_path")
CANDIDATES = (
    "candidates",
    "candidate_labels",
    "partial_label",
    "labels",
    "label_set",
    "suggested",
)
ANNOTATOR = (
    "annotator",
    "worker",
    "user",
    "rater",
    "labeler",
    "annotator_id",
    "worker_id",
    "completed_by",
)
LABEL = ("label", "class", "answer", "choice", "vote")
CONFIDENCE = ("confidence", "score")
ALL_NAMES = {
    *ITEM,
    *IMAGE,
    *CANDIDATES,
    *ANNOTATOR,
    *LABEL,
    *CONFIDENCE,
}


def known(table, names):
    """Returns the columns of a table that have one of some names."""
    return [name for name in table.names if name.lower() in names]


def one(table, names, flag, what, given=None, but=()):
    """Returns the one column for a role, None, or refuses two."""
    if given is not None:
        return table.find(given, flag)
    found = [name for name in known(table, names) if name not in but]
    if len(found) > 1:
        raise DataError(
            f"{table.path}: the columns {first_five(found)} could all be "
            f"{what}; say which with --{flag}={found[0]}"
        )
    return found[0] if found else None


def item_and_image(table, given=None):
    """Returns the column of ids and that of image paths, or None for it.

    Raises:
        DataError: There is no column of ids, or more than one could be it.
    """
    images = known(table, IMAGE)
    if given is not None:
        item = table.find(given, "id_column")
    else:
        item = one(table, ITEM, "id_column", "the id of an item")
        if item is None:
            item = one(table, IMAGE, "id_column", "the name of an item")
    if item is None:
        if table.images is not None:
            return None, None
        raise DataError(
            f"{table.path}: no column names the items (id, image, file, "
            f"...); say which does with --id_column={table.names[0]}. The "
            f"columns are: {first_five(table.names)}"
        )
    if item in images or table.images is not None:
        return item, None
    if len(images) > 1:
        raise DataError(
            f"{table.path}: the columns {first_five(images)} could all name "
            f"the image files; make one of them the id with "
            f"--id_column={images[0]}"
        )
    return item, images[0] if images else None
