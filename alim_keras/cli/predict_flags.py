"""The flags of `python -m alim_keras.predict MODEL [PATHS...]`."""

from absl import flags

from alim_keras.cli import own_flags
from alim_keras.cli.command import Command
from alim_keras.cli.kinds import Group


def _of_table():
    found = flags.FlagValues()
    own_flags.define_table(Group(found, "Table"))
    return tuple(name for name in found if name != "class_names")


# Read for --candidates_file only.
OF_TABLE = _of_table()


def define(flag_values):
    """Defines all flags of the predict command on `flag_values`."""
    group = Group(flag_values, "Prediction")
    group.path(
        "out",
        None,
        "CSV file to write, whole or not at all. Without it: standard output.",
    )
    group.whole(
        "top_k",
        3,
        "How many classes are listed for each item, the likeliest first.",
        low=1,
    )
    group.switch(
        "rank",
        False,
        "Put the candidates of each item of --candidates_file in order of "
        "probability, and mark items whose likeliest class is none of them.",
    )
    group.path(
        "candidates_file",
        None,
        "A table of items with their candidate sets: predict these items, in "
        "place of PATHS.",
    )
    group.whole(
        "batch_size",
        64,
        "How many images are read and predicted at once.",
        low=1,
    )
    group.choice(
        "on_bad_image",
        "error",
        ("error", "skip"),
        "What to do with an image that cannot be read: stop and name it, or "
        "leave it out and count it.",
    )
    own_flags.define_table(Group(flag_values, "The table of candidate sets"))


COMMAND = Command(
    name="alim_keras.predict",
    doc=(
        "Predicts the class of images with a trained model, and writes a CSV "
        "file: id, label, probability, and the next classes. MODEL is a run "
        "folder, a model.keras or a saved_model folder. PATHS are image "
        "files, folders of them however deep, or .npz and .npy files with an "
        "array of images; for a model of feature vectors, .npz, .npy, .csv or "
        ".tsv files of these."
    ),
    define=define,
    words=("model", "[paths...]"),
)
