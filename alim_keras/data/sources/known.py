"""What is known about the data sets that have a name of their own."""

import dataclasses

FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
DIGIT_CLASSES = tuple("0123456789")
# How the files end that hold labels of one's own.
TABLES = (
    ".csv",
    ".tsv",
    ".txt",
    ".jsonl",
    ".ndjson",
    ".json",
    ".parquet",
    ".npz",
    ".npy",
)


@dataclasses.dataclass(frozen=True)
class Known:
    """One named data set.

    Args:
        tfds_name: String, its name in TensorFlow Datasets, or None.
        file_name: String, the stem of the `.npz` looked for.
        archives: Dict from an official archive's file name to its checksum
            ("md5:..." or "sha256:...").
        folders: Tuple of strings, the folders these archives unpack to.
        idx: Dict from the four IDX file names, without `.gz`, to the md5 of
            their unpacked contents.
        system_folder: String, where a Linux distribution installs it.
        class_names: Tuple of strings, where the files do not name them.
        mean: Tuple of floats per channel, as published with the methods.
        std: Tuple of floats per channel.
        protocol: String, the candidate protocol of the published tables.
        with_superclasses: Boolean.
        image_size: Integer, the size images are brought to by default.
    """

    tfds_name: str = None
    file_name: str = None
    archives: dict = dataclasses.field(default_factory=dict)
    folders: tuple = ()
    idx: dict = dataclasses.field(default_factory=dict)
    system_folder: str = None
    class_names: tuple = None
    mean: tuple = None
    std: tuple = None
    protocol: str = "flip"
    with_superclasses: bool = False
    image_size: int = None


# The checksums are those the data sets' own pages give, and TFDS.
_CIFAR100 = Known(
    tfds_name="cifar100",
    file_name="cifar100",
    archives={
        "cifar-100-python.tar.gz": "md5:eb9058c3a382ffc7106e4002c42a8d85",
        "cifar-100-binary.tar.gz": (
            "sha256:58a81ae192c23a4be8b1804d68e518ed"
            "807d710a4eb253b1f2a199162a40d8ec"
        ),
    },
    folders=("cifar-100-python", "cifar-100-binary"),
    mean=(0.5071, 0.4865, 0.4409),
    std=(0.2673, 0.2564, 0.2762),
    with_superclasses=True,
)

KNOWN = {
    "digits": Known(class_names=DIGIT_CLASSES),
    "cifar10": Known(
        tfds_name="cifar10",
        file_name="cifar10",
        archives={
            "cifar-10-python.tar.gz": "md5:c58f30108f718f92721af3b95e74349a",
            "cifar-10-binary.tar.gz": (
                "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d6"
                "8f9f25eb1ed8d9ddda3db29a59bca1dd"
            ),
        },
        folders=("cifar-10-batches-py", "cifar-10-batches-bin"),
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
    ),
    "cifar100": _CIFAR100,
    "cifar100h": dataclasses.replace(_CIFAR100, protocol="superclass"),
    "cub200": Known(
        tfds_name="caltech_birds2011",
        file_name="cub200",
        archives={"CUB_200_2011.tgz": "md5:97eceeb196236b17998738112f37df78"},
        folders=("CUB_200_2011",),
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        protocol="pico",
        image_size=256,
    ),
    "fashion_mnist": Known(
        tfds_name="fashion_mnist",
        file_name="fashion_mnist",
        idx={
            "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
            "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
            "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
        },
        system_folder="/usr/share/datasets/fashion-mnist",
        class_names=FASHION_CLASSES,
        mean=(0.2860,),
        std=(0.3530,),
    ),
    "mnist": Known(
        tfds_name="mnist",
        file_name="mnist",
        idx={
            "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
            "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
            "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
            "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
        },
        class_names=DIGIT_CLASSES,
        mean=(0.1307,),
        std=(0.3081,),
    ),
}
ALIASES = {
    "caltech_birds2011": "cub200",
    "cub": "cub200",
    "cub_200_2011": "cub200",
}
