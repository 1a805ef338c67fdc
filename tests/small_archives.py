"""Small files in the layouts of the official archives, for the tests."""

import gzip
import io
import pickle
import struct
import tarfile

import numpy as np


def write_tar(path, contents):
    """Writes {name: bytes} as a .tar.gz."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def pictures(count, size=32, channels=3, seed=0):
    rng = np.random.default_rng(seed)
    shape = (count, size, size, channels)
    return rng.integers(0, 256, shape, dtype=np.uint8)


def _records(images, *columns):
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    heads = np.stack(columns, 1).astype(np.uint8)
    return np.concatenate([heads, planes], 1).tobytes()


def cifar10_binary(images, labels, test_images, test_labels, names):
    top = "cifar-10-batches-bin"
    parts = np.array_split(np.arange(len(images)), 5)
    contents = {
        f"{top}/data_batch_{n}.bin": _records(images[part], labels[part])
        for n, part in enumerate(parts, 1)
    }
    contents[f"{top}/test_batch.bin"] = _records(test_images, test_labels)
    contents[f"{top}/batches.meta.txt"] = "\n".join(names).encode() + b"\n\n"
    return contents


def cifar10_python(images, labels, test_images, test_labels, names):
    top = "cifar-10-batches-py"
    parts = np.array_split(np.arange(len(images)), 5)

    def batch(pixels, classes):
        rows = pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)
        content = {b"data": rows, b"labels": classes.tolist()}
        return pickle.dumps(content, protocol=2)

    contents = {
        f"{top}/data_batch_{n}": batch(images[part], labels[part])
        for n, part in enumerate(parts, 1)
    }
    contents[f"{top}/test_batch"] = batch(test_images, test_labels)
    meta = {b"label_names": [name.encode() for name in names]}
    contents[f"{top}/batches.meta"] = pickle.dumps(meta, protocol=2)
    return contents


def cifar100_binary(images, labels, coarse, names):
    """Both splits hold the same images."""
    top = "cifar-100-binary"
    records = _records(images, coarse, labels)
    return {
        f"{top}/train.bin": records,
        f"{top}/test.bin": records,
        f"{top}/fine_label_names.txt": "\n".join(names).encode() + b"\n",
    }


def cifar100_python(images, labels, names):
    top = "cifar-100-python"
    rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    batch = {b"data": rows, b"fine_labels": labels.tolist()}
    meta = {b"fine_label_names": [name.encode() for name in names]}
    return {
        f"{top}/train": pickle.dumps(batch, protocol=2),
        f"{top}/test": pickle.dumps(batch, protocol=2),
        f"{top}/meta": pickle.dumps(meta, protocol=2),
    }


def idx(array):
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return head + array.astype(np.uint8).tobytes()


def write_idx(folder, contents):
    """Writes {stem: bytes} as .gz files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(content))


# Folder, file, in the training set; not in the order of the names.
BIRDS = (
    ("001.Black_footed_Albatross", "Black_Footed_Albatross_0046_18", True),
    ("001.Black_footed_Albatross", "Black_Footed_Albatross_0009_34", False),
    ("002.Laysan_Albatross", "Laysan_Albatross_0002_1027", True),
    ("002.Laysan_Albatross", "Laysan_Albatross_0001_545", True),
    ("002.Laysan_Albatross", "Laysan_Albatross_0003_1033", False),
)


def jpeg(colour, width, height, mode="RGB"):
    import PIL.Image

    content = io.BytesIO()
    PIL.Image.new(mode, (width, height), colour).save(content, "JPEG")
    return content.getvalue()


def cub(images=None):
    """Five pictures of one colour each, of different shapes."""
    top = "CUB_200_2011"
    lists = {"images": "", "image_class_labels": "", "train_test_split": ""}
    contents = {}
    for number, (folder, file, train) in enumerate(BIRDS, 1):
        shade = 40 * number
        lists["images"] += f"{number} {folder}/{file}.jpg\n"
        lists["image_class_labels"] += f"{number} {int(folder[:3])}\n"
        lists["train_test_split"] += f"{number} {int(train)}\n"
        contents[f"{top}/images/{folder}/{file}.jpg"] = (
            jpeg(shade, 30, 20, "L")
            if number == 5
            else jpeg((shade, shade, 255 - shade), 20 + 4 * number, 24)
        )
    lists["classes"] = "1 001.Black_footed_Albatross\n2 002.Laysan_Albatross\n"
    # The lists come last, so that one pass cannot do.
    for name, text in lists.items():
        contents[f"{top}/{name}.txt"] = text.encode()
    return contents
