"""CUB-200-2011 from the official archive or its unpacked folder."""

import concurrent.futures
import itertools

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.messages import one_line
from alim_keras.data.sources import members
from alim_keras.data.sources import resize
from alim_keras.errors import DataError

_TOP = "CUB_200_2011"
_LISTS = ("images", "image_class_labels", "train_test_split", "classes")
_AT_ONCE = 256


def example_id(file_name):
    """Returns the id of an image: its file name without folder and ending."""
    return file_name.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def class_name(folder):
    """Returns "Black_footed_Albatross" of "001.Black_footed_Albatross"."""
    return folder.split(".", 1)[-1]


def read(path, image_size):
    """Reads the data set in the order of `images.txt`, the authors' order.

    Args:
        path: String, `.../CUB_200_2011.tgz` or the folder it unpacks to.
        image_size: Integer, see `resize.square`.

    Returns:
        Dict of the fields of `ImageData`.

    Raises:
        DataError: Lists or images are missing, or an image cannot be read.
    """
    lists = members.read(path, [f"{_TOP}/{name}.txt" for name in _LISTS])
    files, labels, in_train, classes = (
        _parse(lists[f"{_TOP}/{name}.txt"], f"{path}: {name}.txt")
        for name in _LISTS
    )
    if not files.keys() == labels.keys() == in_train.keys():
        raise DataError(
            f"{path}: images.txt, image_class_labels.txt and "
            "train_test_split.txt name different images. Received: "
            f"{len(files)}, {len(labels)} and {len(in_train)} of them"
        )
    is_train = np.array([in_train[one] == "1" for one in files])
    # Each image's row within its own split.
    row = np.where(is_train, np.cumsum(is_train), np.cumsum(~is_train)) - 1
    place = {
        f"{_TOP}/images/{name}": n for n, name in enumerate(files.values())
    }
    shape = (image_size, image_size, 3)
    images = {
        True: np.zeros((int(is_train.sum()), *shape), np.uint8),
        False: np.zeros((int((~is_train).sum()), *shape), np.uint8),
    }
    todo = set(place)
    for name, pixels in _decoded(path, place, image_size):
        number = place[name]
        images[bool(is_train[number])][row[number]] = pixels
        todo.discard(name)
    if todo:
        raise DataError(
            f"{path}: {len(todo)} of {len(place)} images are missing: "
            f"{first_five(sorted(todo))}"
        )
    # The labels in the file start at 1.
    numbers = np.array([int(labels[one]) - 1 for one in files], np.int64)
    ids = np.array([example_id(name) for name in files.values()], str)
    return {
        "images": images[True],
        "labels": numbers[is_train],
        "ids": ids[is_train],
        "class_names": tuple(class_name(text) for text in classes.values()),
        "test_images": images[False],
        "test_labels": numbers[~is_train],
        "test_ids": ids[~is_train],
    }


def _parse(content, where):
    """Returns the lines "key value" of a list as a dict, in their order."""
    pairs = [line.split() for line in content.decode().splitlines() if line]
    wrong = [number for number, pair in enumerate(pairs, 1) if len(pair) != 2]
    if wrong or not pairs:
        raise DataError(
            f"{where}: lines of two words were expected. "
            f"Received: {len(pairs)} lines, wrong ones: {first_five(wrong)}"
        )
    return dict(pairs)


def _decoded(path, place, image_size):
    """Yields (name, pixels); decoding runs beside reading the archive."""

    def decode(item):
        name, content = item
        try:
            return name, resize.decode(content, image_size)
        except (OSError, ValueError, SyntaxError) as error:
            raise DataError(
                f"{path}: {name} cannot be decoded ({one_line(error)})"
            ) from error

    stream = members.walk(path, place.__contains__)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        while batch := list(itertools.islice(stream, _AT_ONCE)):
            yield from pool.map(decode, batch)
