"""Flags about labels and images of one's own."""


def define_table(group):
    """Defines the flags that say how a table of labels is read."""
    group.path(
        "images",
        None,
        "Folder of the images that the table names. Without it: "
        "the table's own folder.",
    )
    group.names(
        "class_names",
        None,
        "The classes: a file with a name on each line, a number C for 0 to "
        "C-1, or names separated by commas. Without it: those found.",
    )
    group.choice(
        "layout",
        "auto",
        ("auto", "list", "wide", "long", "multi_hot"),
        "Form of the table: a list of candidates for each item, a column for "
        "each annotator, a row for each answer, or a column of 0 and 1 for "
        "each class. auto finds it out, and says so.",
    )
    group.text(
        "id_column", None, "Column of the items. Without it: found by name."
    )
    group.text(
        "candidates_column",
        None,
        "Column of --layout=list with the candidates, for example suggested, "
        "in a labels.csv of the audit. Without it: found by name.",
    )
    group.text(
        "annotator_column",
        None,
        "Column of --layout=long that says who answered. Without it: found "
        "by name.",
    )
    group.text(
        "label_column",
        None,
        "Column of --layout=long with the answer. Without it: found by name.",
    )
    group.whole(
        "min_votes",
        1,
        "How many annotators must have named a class for it to be a "
        "candidate; 1 takes the union.",
        low=1,
    )
    group.number(
        "min_confidence",
        None,
        "Leave out answers whose confidence is lower. Without it: all count.",
    )
    group.text(
        "none_of_these",
        None,
        "Answers that stand for no class, separated by commas, such as "
        "none,other. They are left out; what then is empty goes by "
        "--empty_set. Without it: every answer is a class.",
    )
    group.choice(
        "empty_set",
        "error",
        ("error", "all", "drop"),
        "What to do with an item without candidates: refuse the table, make "
        "all classes candidates, or leave the item out.",
    )
    group.choice(
        "duplicates",
        "error",
        ("error", "union", "first"),
        "What to do with an item whose rows have different sets: refuse the "
        "table, unite them, or take the first. Equal ones count once.",
    )


def define_images(group):
    """Defines the flags that say how image files are treated."""
    group.choice(
        "on_bad_image",
        "error",
        ("error", "skip"),
        "What to do if image files are missing or unreadable: name them and "
        "stop, or leave their items out.",
    )
    group.choice(
        "verify",
        "headers",
        ("headers", "full"),
        "How image files are looked at first: their headers, or every pixel, "
        "which takes as long as an epoch of reading.",
    )


def define_truth(group):
    """Defines the flags about true labels, where some are known."""
    group.path(
        "known_labels",
        None,
        "A CSV file with the columns id and label: true labels of some "
        "training items, for reports and for --noise_rate=auto. Without it: "
        "none is known.",
    )
    group.switch(
        "known_as_sets",
        False,
        "Train on each true label of --known_labels in place of its set.",
    )
    group.path(
        "test_labels",
        None,
        "A CSV file with the columns id and label: items to test on. Those "
        "that --dataset names too are left out of training. Without it: no "
        "test.",
    )


def define_cache(group):
    """Defines the flag that says where decoded images are kept."""
    group.choice(
        "image_cache",
        "auto",
        ("auto", "none", "memory", "disk"),
        "Where decoded image files are kept between epochs: nowhere, in "
        "memory, or in a file of the run folder. auto: in memory if they "
        "take less than 1 GiB.",
    )
