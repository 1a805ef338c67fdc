"""Data sets by name: built in, in files, or of TensorFlow Datasets."""

import dataclasses
import gzip
import hashlib
import os
import re
import struct
import zlib

import numpy as np

from alim_keras.data import prepared
from alim_keras.data.checks import default_ids
from alim_keras.data.checks import open_npz
from alim_keras.data.decoding import resize_all
from alim_keras.data.training_set import TrainingSet
from alim_keras.data.training_set import stratified_subset
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import check_number
from alim_keras.errors import first_five
from alim_keras.errors import one_line

FASHION_CLASSES = tuple(
    "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,"
    "Ankle boot".split(",")
)
DIGIT_CLASSES = tuple("0123456789")
_TEST_DIGITS = 360
_IDX_FILES = {
    "images": "train-images-idx3-ubyte",
    "labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
_NPZ_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclasses.dataclass(frozen=True)
class Known:
    """One named data set.

    Args:
        tfds_name: String, its name in TensorFlow Datasets, or None.
        idx: Tuple of the md5 of the four IDX files' unpacked contents, in
            the order of training images and labels, test images and labels.
        system_folder: String, where a Linux distribution installs it.
        class_names: Tuple of strings, where the files do not name them.
        mean: Tuple of floats per channel, as published with the methods.
        std: Tuple of floats per channel.
        protocol: String, the candidate protocol of the published tables.
        image_size: Integer, the size images are brought to by default.
    """

    tfds_name: str = None
    idx: tuple = ()
    system_folder: str = None
    class_names: tuple = None
    mean: tuple = None
    std: tuple = None
    protocol: str = "flip"
    image_size: int = None


_CIFAR100 = Known(
    tfds_name="cifar100",
    mean=(0.5071, 0.4865, 0.4409),
    std=(0.2673, 0.2564, 0.2762),
)
KNOWN = {
    "digits": Known(class_names=DIGIT_CLASSES),
    "cifar10": Known(
        tfds_name="cifar10",
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
    ),
    "cifar100": _CIFAR100,
    "cifar100h": dataclasses.replace(_CIFAR100, protocol="superclass"),
    "cub200": Known(
        tfds_name="caltech_birds2011",
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        protocol="pico",
        image_size=256,
    ),
    "fashion_mnist": Known(
        tfds_name="fashion_mnist",
        idx=(
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        system_folder="/usr/share/datasets/fashion-mnist",
        class_names=FASHION_CLASSES,
        mean=(0.2860,),
        std=(0.3530,),
    ),
    "mnist": Known(
        tfds_name="mnist",
        idx=(
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        class_names=DIGIT_CLASSES,
        mean=(0.1307,),
        std=(0.3081,),
    ),
}
_ALIASES = {
    "caltechbirds2011": "cub200",
    "cub": "cub200",
    "cub2002011": "cub200",
    **{re.sub(r"[\W_]", "", name): name for name in KNOWN},
}


# Source: Krizhevsky, "Learning multiple layers of features from tiny
# images", 2009, and the data set's page.
CIFAR100_SUPERCLASSES = {
    name: tuple(members.split())
    for name, members in (
        line.split(": ")
        for line in """\
aquatic_mammals: beaver dolphin otter seal whale
fish: aquarium_fish flatfish ray shark trout
flowers: orchid poppy rose sunflower tulip
food_containers: bottle bowl can cup plate
fruit_and_vegetables: apple mushroom orange pear sweet_pepper
household_electrical_devices: clock keyboard lamp telephone television
household_furniture: bed chair couch table wardrobe
insects: bee beetle butterfly caterpillar cockroach
large_carnivores: bear leopard lion tiger wolf
large_man-made_outdoor_things: bridge castle house road skyscraper
large_natural_outdoor_scenes: cloud forest mountain plain sea
large_omnivores_and_herbivores: camel cattle chimpanzee elephant kangaroo
medium_mammals: fox porcupine possum raccoon skunk
non-insect_invertebrates: crab lobster snail spider worm
people: baby boy girl man woman
reptiles: crocodile dinosaur lizard snake turtle
small_mammals: hamster mouse rabbit shrew squirrel
trees: maple_tree oak_tree palm_tree pine_tree willow_tree
vehicles_1: bicycle bus motorcycle pickup_truck train
vehicles_2: lawn_mower rocket streetcar tank tractor
""".splitlines()
    )
}


def plain_name(text):
    """Returns the one spelling of a data set's name.

    Example:

    >>> plain_name("CIFAR-10"), plain_name("Caltech101")
    ('cifar10', 'caltech101')
    """
    name = str(text).lower()
    return _ALIASES.get(re.sub(r"[\W_]", "", name), name)


def is_table(dataset):
    """Returns whether `--dataset` is a table or a folder of one's own.

    It is if it is an absolute path, except for an `.npz` file with images,
    which is a whole data set.
    """
    if not os.path.isabs(dataset):
        return False
    if not dataset.endswith(".npz"):
        return True
    try:
        with np.load(dataset, allow_pickle=False) as archive:
            return "train_images" not in archive.files
    except Exception:
        # Not even an archive: the reader of tables says what is wrong.
        return True


def is_table_file(dataset):
    """Returns whether `--dataset` is a table of one's own in a file."""
    return is_table(dataset) and not os.path.isdir(dataset)


def load(name, data_dir=None, download=True, image_size=None):
    """Loads a data set by name or path.

    A name is looked for, in this order: in `data_dir` as a folder TFDS
    prepared, as IDX files, as `<name>.npz`; then where the Linux distribution
    installs it; then in TFDS's own folder. None of that touches the network.
    Last, unless forbidden, TFDS downloads it; official archives that lie in
    `downloads/manual` below its folder are taken from there, without network.

    Args:
        name: String: `"digits"` (built in), `"cifar10"`, `"cifar100"`,
            `"cifar100h"`, `"cub200"`, `"fashion_mnist"`, `"mnist"`, another
            image classification set of TFDS, or the path of an `.npz` file.
        data_dir: String, or None to look only where data usually are.
        download: Boolean. Whether TFDS may fetch what is nowhere here.
        image_size: Integer: bring every image to this square size, the
            shorter side scaled to it and the middle kept. Defaults to the
            images' own size, 256 for `cub200`.

    Returns:
        A `TrainingSet` without candidate sets.

    Raises:
        ConfigError: An unknown name, or an `image_size` that is none.
        DataError: The data are nowhere, damaged, or not what their name says.
        EnvironmentLacksError: A package is missing.

    Example:

    >>> data = load("digits")
    >>> data.images.shape, data.test_images.shape
    ((1437, 8, 8, 1), (360, 8, 8, 1))
    """
    name = os.fspath(name)
    check_number("image_size", image_size, 1, whole=True, optional=True)
    if data_dir is not None:
        data_dir = os.path.normpath(os.path.expanduser(os.fspath(data_dir)))
        if os.path.exists(data_dir) and not os.path.isdir(data_dir):
            raise DataError(
                f"`data_dir` must be a folder. Received: data_dir={data_dir!r}"
            )
    if name.endswith(".npz"):
        fields = read_npz(os.path.expanduser(name))
        return _finish(name, Known(), fields, name, image_size)
    plain = plain_name(name)
    if plain == "digits":
        fields = _read_digits()
        return _finish(name, KNOWN[plain], fields, "scikit-learn", image_size)
    known = KNOWN.get(plain, Known(tfds_name=plain))
    # Only files of images that differ in size are read at the default size.
    size = image_size or known.image_size
    looked = []
    for kind, path in _places(known, plain, data_dir):
        folder = os.path.dirname(path) if kind == "npz" else path
        looked += [folder] if folder not in looked else []
        fields = None
        if kind == "tfds" and (path := prepared.find(known.tfds_name, path)):
            fields = prepared.read(path, known.tfds_name, size)
        elif kind == "idx" and all(_idx_path(path, n) for n in _IDX_FILES):
            fields = _read_idx(path, known)
        elif kind == "npz" and os.path.isfile(path):
            fields = read_npz(path)
        if fields is not None:
            return _finish(name, known, fields, path, image_size)
    forms = "its four IDX files or " if known.idx else ""
    path = prepared.download(
        known.tfds_name,
        data_dir or prepared.default_dir(),
        download,
        names=[*KNOWN],
        absent=f"{name} is not on this machine, looked in {', '.join(looked)}",
        remedy=f"Put {forms}{plain}.npz in --data_dir",
    )
    fields = prepared.read(path, known.tfds_name, size)
    return _finish(name, known, fields, path, image_size)


def _places(known, plain, data_dir):
    """Returns pairs (kind, file or folder) to look at, in order."""
    places = []
    if data_dir is not None:
        places.append(("tfds", data_dir))
        if known.idx:
            for part in (plain, ".", "downloads", "downloads/manual"):
                folder = os.path.normpath(os.path.join(data_dir, part))
                places.append(("idx", folder))
        for stem in dict.fromkeys((plain, known.tfds_name)):
            places.append(("npz", os.path.join(data_dir, f"{stem}.npz")))
    if known.system_folder:
        places.append(("idx", known.system_folder))
    return [*places, ("tfds", prepared.default_dir())]


def _finish(name, known, fields, source, image_size):
    """Returns the `TrainingSet`: constants, superclasses and size."""
    for part in ("images", "test_images"):
        if fields[part].ndim == 4:
            fields[part] = resize_all(fields[part], image_size)
    channels = fields["images"].shape[-1]
    if known.mean is not None and len(known.mean) == channels:
        fields["mean"], fields["std"] = known.mean, known.std
    if "superclasses" not in fields:
        try:
            fields["superclasses"] = superclasses_of(fields["class_names"])
        except ConfigError:
            if known.tfds_name == "cifar100":
                raise
    return TrainingSet(
        name=name, protocol=known.protocol, source=str(source), **fields
    )


def superclasses_of(class_names, table=None):
    """Returns the superclass number of every class, joined by name.

    Case, blanks and hyphens do not matter, nor does the order of classes.

    Args:
        class_names: Strings `(num_classes,)`.
        table: Dict from superclass to the names of its classes. Defaults to
            `CIFAR100_SUPERCLASSES`.

    Returns:
        Integers `(num_classes,)`: the place of each class's superclass in
        the table.

    Raises:
        ConfigError: A class is in no superclass of the table.

    Example:

    >>> superclasses_of(["whale", "Maple tree", "beaver"]).tolist()
    [0, 17, 0]
    """
    table = CIFAR100_SUPERCLASSES if table is None else table
    number = {
        _plain(name): place
        for place, members in enumerate(table.values())
        for name in members
    }
    unknown = [name for name in class_names if _plain(name) not in number]
    if unknown:
        raise ConfigError(
            f"{len(unknown)} of {len(class_names)} classes belong to no "
            f"superclass of the table: {first_five(unknown)}; the superclass "
            "protocol needs the class names of CIFAR-100"
        )
    return np.array([number[_plain(name)] for name in class_names], np.int64)


def _plain(name):
    return str(name).strip().lower().replace(" ", "_").replace("-", "_")


def _read_digits():
    """Reads scikit-learn's digits; 360, stratified, are always the test."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise EnvironmentLacksError(
            "The built-in data set digits comes with scikit-learn: "
            "pip install scikit-learn"
        ) from error
    bunch = load_digits()
    images = np.round(bunch.images * (255.0 / 16.0)).astype(np.uint8)
    images, labels = images[..., None], bunch.target.astype(np.int64)
    test = stratified_subset(labels, _TEST_DIGITS, seed=0)
    train = np.setdiff1d(np.arange(len(labels)), test)
    return {
        "images": images[train],
        "labels": labels[train],
        "ids": default_ids(train, "train"),
        "class_names": DIGIT_CLASSES,
        "test_images": images[test],
        "test_labels": labels[test],
        "test_ids": default_ids(test, "test"),
    }


def _idx_path(folder, field):
    for ending in (".gz", ""):
        path = os.path.join(folder, _IDX_FILES[field] + ending)
        if os.path.isfile(path):
            return path
    return None


def _read_idx(folder, known):
    """Reads the four IDX files; the order is the official one."""
    arrays = {}
    for field, expected in zip(_IDX_FILES, known.idx, strict=True):
        path = _idx_path(folder, field)
        opener = gzip.open if path.endswith(".gz") else open
        try:
            with opener(path, "rb") as file:
                content = file.read()
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(
                f"{path}: is damaged or was cut short ({one_line(error)}); "
                "fetch it again"
            ) from error
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if digest != expected:
            raise DataError(
                f"{path}: is not the file of this data set (MNIST and "
                "Fashion-MNIST use the same file names), or is damaged. "
                f"Received: md5 {digest} unpacked; expected {expected}"
            )
        # A magic number, the shape, then the bytes.
        rank = content[3]
        start = 4 + 4 * rank
        shape = struct.unpack(f">{rank}I", content[4:start])
        values = np.frombuffer(content, np.uint8, offset=start)
        arrays[field] = values.reshape(shape).copy()
    return {
        "images": arrays["images"][..., None],
        "labels": arrays["labels"].astype(np.int64),
        "ids": default_ids(len(arrays["images"])),
        "class_names": known.class_names,
        "test_images": arrays["test_images"][..., None],
        "test_labels": arrays["test_labels"].astype(np.int64),
        "test_ids": default_ids(len(arrays["test_images"]), "test"),
    }


def read_npz(path):
    """Returns the fields of a `TrainingSet` in an `.npz` file.

    Needed are `train_images`, `train_labels`, `test_images` and
    `test_labels`; `label_names`, `train_ids`, `test_ids` and `superclasses`
    may be there. Grey images may leave out the channel axis. Without ids an
    example is named "train_00000" after its place in this file, and `notes`
    says so.
    """
    arrays = open_npz(path)
    missing = [name for name in _NPZ_ARRAYS if name not in arrays]
    if missing:
        raise DataError(
            f"{path}: the arrays {', '.join(missing)} are missing. "
            f"Received: {', '.join(sorted(arrays)) or 'no arrays'}"
        )
    labels, test_labels = arrays["train_labels"], arrays["test_labels"]
    if "label_names" in arrays:
        names = tuple(str(name) for name in arrays["label_names"].tolist())
    else:
        parts = [part for part in (labels, test_labels) if part.size]
        highest = max((int(part.max()) for part in parts), default=0)
        names = tuple(str(number) for number in range(highest + 1))
    fields = {
        "labels": labels,
        "class_names": names,
        "test_labels": test_labels,
        "ids": arrays.get("train_ids"),
        "test_ids": arrays.get("test_ids"),
    }
    for split, prefix in (("train", ""), ("test", "test_")):
        images = arrays[f"{split}_images"]
        fields[f"{prefix}images"] = (
            images[..., None] if images.ndim == 3 else images
        )
        if fields[f"{prefix}ids"] is None:
            fields[f"{prefix}ids"] = default_ids(len(images), split)
    if "train_ids" not in arrays:
        fields["notes"] = (
            f"{path} has no train_ids: its images are called train_00000 and "
            "so on after their place, and sets are joined by these names",
        )
    if not len(labels):
        raise DataError(f"{path}: train_images holds no image")
    if "superclasses" in arrays:
        fields["superclasses"] = arrays["superclasses"].astype(np.int64)
    return fields
