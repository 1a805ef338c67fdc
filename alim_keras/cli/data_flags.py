"""Flags of the commands that read images: data, candidate sets, views."""

from alim_keras.cli import own_flags


def define_data(group):
    """Defines the flags that say which images are read."""
    group.dataset(
        "dataset",
        "digits",
        "digits (built in), a TFDS name such as cifar10, cifar100, "
        "cifar100h, cub200, fashion_mnist, mnist; or labels of your own: a "
        "table (.csv, .tsv, .jsonl, .parquet, .npz, Label Studio's .json), or "
        "a folder with a folder of images for each class.",
    )
    group.path(
        "data_dir",
        None,
        "Where the data lie: a prepared TFDS folder, an archive, an .npz or a "
        "folder of IDX files. Without it the usual places are searched.",
    )
    group.switch(
        "download", True, "Let TFDS fetch a data set that is not here."
    )
    group.whole(
        "train_size",
        None,
        "Use a subset of this many training images, stratified where all "
        "true labels are known. Without it: all.",
        low=1,
    )
    group.number(
        "imbalance",
        None,
        "Thin the classes out after --train_size, so that the first has this "
        "many times the images of the last. Without it: all classes stay as "
        "they are.",
        low=1,
    )
    group.whole(
        "image_size",
        None,
        "Side in pixels to which images are resized. Without it: as they "
        "are; image files of several sizes, 224.",
        low=1,
    )


def define_own(group):
    """Defines the flags of labels and images of one's own."""
    own_flags.define_table(group)
    own_flags.define_images(group)
    own_flags.define_truth(group)


def define_candidates(group):
    """Defines the flags that say where the candidate sets come from."""
    group.choice(
        "protocol",
        None,
        ("flip", "pico", "superclass"),
        "How candidate sets are simulated: flip swaps the true label out at "
        "rate --noise_level; pico drops it and redraws empty sets; superclass "
        "is pico within the true superclass. Without it: the one the data "
        "set is published with, mostly flip.",
    )
    group.number(
        "ambiguity",
        0.3,
        "q: the probability that a wrong label is a candidate.",
        low=0,
        high=1,
    )
    group.number(
        "noise_level",
        0.3,
        "eta of the simulation: how often the true label is not a candidate.",
        low=0,
        high=1,
    )
    group.path(
        "candidates_file",
        None,
        "Read the candidate sets of --dataset from this table or .npz file, "
        "and simulate none.",
    )
    group.path(
        "save_candidates", None, "Write the candidate sets to this file."
    )
    group.switch(
        "legacy_stream",
        False,
        "Draw the sets with the random stream of the authors' code, bit for "
        "bit.",
    )


def define_views(group):
    """Defines the flags of the augmented views."""
    group.choice(
        "views",
        "device",
        ("device", "tf_data"),
        "Where the augmented views are made: on the device inside the step, "
        "or in the input pipeline. The numbers are the same.",
    )
    group.choice(
        "augmentation",
        "simaugment",
        ("simaugment", "autoaugment"),
        "What the views are: PiCO's, as the flags below say, or CRDPLL's, a "
        "crop with a reflected margin and for strong views a black square and "
        "AutoAugment's policy for CIFAR-10. Of the flags below the latter "
        "read --flip only.",
    )
    group.number(
        "crop_scale",
        0.5,
        "Smallest share of the image's area that a random crop takes.",
        low=0,
        high=1,
        low_open=True,
    )
    group.number(
        "flip",
        0.0,
        "Share of the views that are mirrored left to right. 0 where that "
        "changes the meaning, as for digits.",
        low=0,
        high=1,
    )
    group.switch(
        "jitter", False, "Change brightness, contrast, saturation and hue."
    )
    group.whole(
        "strong_operations",
        3,
        "Random operations of a strong view.",
        low=0,
    )
    group.number(
        "cutout",
        0.5,
        "Largest side of the strong view's cutout, as share of the width.",
        low=0,
        high=1,
    )
