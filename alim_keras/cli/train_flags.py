"""The flags of `python -m alim_keras.train`.

The defaults are those of the built-in digits run, which ends in minutes on
any machine. The published settings stand in the flagfiles under flags/.
"""

from alim_keras.cli.command import Command
from alim_keras.cli.data_flags import define_candidates
from alim_keras.cli.data_flags import define_data
from alim_keras.cli.data_flags import define_own
from alim_keras.cli.data_flags import define_views
from alim_keras.cli.kinds import Group
from alim_keras.cli.method_flags import define_alim
from alim_keras.cli.method_flags import define_method
from alim_keras.cli.own_flags import define_cache

# What --dataset=NAME alone means, for the data sets of the paper.
PUBLISHED = {
    "cifar10": "cifar10",
    "cifar100": "cifar100",
    "cifar100h": "cifar100h",
    "cub200": "cub200",
}


def define(flag_values):
    """Defines all flags of the train command on `flag_values`."""
    _define_run(Group(flag_values, "Run"))
    define_data(Group(flag_values, "Data"))
    own = Group(flag_values, "Labels of your own")
    define_own(own)
    define_cache(own)
    define_candidates(Group(flag_values, "Candidate sets"))
    define_views(Group(flag_values, "Views"))
    define_alim(Group(flag_values, "ALIM"))
    define_method(Group(flag_values, "Method"))
    _define_network(Group(flag_values, "Network"))
    _define_optimisation(Group(flag_values, "Optimisation"))
    _define_evaluation(Group(flag_values, "Evaluation"))
    _define_machine(Group(flag_values, "Machine"))


def _define_run(group):
    group.path(
        "run_dir",
        None,
        "Folder of the run; the same command continues what is there. Without "
        "it: runs/<dataset>-<method>-seed<seed>-<six digits>.",
    )
    group.whole(
        "seed",
        0,
        "Every random draw is a function of it.",
        low=0,
        high=2**31 - 1,
    )
    group.choice(
        "progress", "bar", ("bar", "line", "none"), "How progress is shown."
    )
    group.switch(
        "tensorboard",
        False,
        "Write TensorBoard logs to the run folder; needs the package.",
    )


def _define_network(group):
    group.text(
        "network",
        None,
        "small_cnn, cifar_resnet18, cifar_wide_resnet34_10, convnet9, or a "
        "model of keras.applications by its name; mlp for feature vectors. "
        "Without it: small_cnn or mlp.",
    )
    group.whole(
        "width",
        None,
        "Channels of the first stage. Without it: the network's own.",
        low=1,
    )
    group.text(
        "weights",
        None,
        "Weights that the backbone starts from: a file, or imagenet for a "
        "model of keras.applications. Without it: random.",
    )


def _define_optimisation(group):
    group.whole("epochs", 80, "Passes over the training set.", low=1)
    group.whole("batch_size", 64, "Images in a step, all replicas.", low=1)
    group.number(
        "learning_rate",
        0.05,
        "Step size of SGD at the start.",
        low=0,
        low_open=True,
    )
    group.choice(
        "lr_schedule",
        "cosine",
        ("cosine", "constant"),
        "How the learning rate falls: once an epoch along a cosine to a "
        "thousandth, or not.",
    )
    group.number(
        "momentum", 0.9, "Momentum of SGD.", low=0, high=1, high_open=True
    )
    group.number(
        "weight_decay",
        1e-3,
        "Added to the gradient as weight_decay x weight, for every weight "
        "(the coupled form).",
        low=0,
    )


def _define_evaluation(group):
    group.number(
        "holdout",
        0.1,
        "Share of the training set held out, with its noisy sets, for "
        "covering rate and approximated accuracy.",
        low=0,
        high=1,
        high_open=True,
    )
    group.choice(
        "select",
        "last",
        ("last", "cr", "aa"),
        "Which epoch is reported as selected: the last, or the best covering "
        "rate or approximated accuracy on the held-out part.",
    )
    group.whole(
        "evaluate_every",
        1,
        "Evaluate the test set and the held-out part in every epoch whose "
        "number this divides, and in the last; --select chooses among these.",
        low=1,
    )


def _define_machine(group):
    group.choice(
        "backend",
        "tensorflow",
        ("tensorflow", "jax"),
        "Keras backend. JAX is for accelerators; TensorFlow is the faster one "
        "on a CPU.",
    )
    group.choice(
        "distribute",
        "none",
        ("none", "mirrored", "multi_worker"),
        "mirrored: one replica on each device of this machine. multi_worker: "
        "one in each of many processes, on any machines; see "
        "docs/distributed.md.",
    )
    group.whole(
        "replicas",
        None,
        "Replicas of --distribute=mirrored. On a CPU this many logical "
        "devices, for a trial. Without it: one for each device.",
        low=1,
    )
    group.choice(
        "precision",
        "float32",
        ("float32", "mixed_bfloat16", "mixed_float16"),
        "Keras dtype policy. Losses and tables stay in float32.",
    )
    group.choice(
        "table",
        "dense",
        ("dense", "sparse"),
        "How pseudo labels and candidate sets are kept. sparse is for many "
        "classes: the candidates' weights, the strongest others' and a "
        "remainder.",
    )
    group.choice(
        "table_dtype",
        "float32",
        ("float32", "float16"),
        "How the table stores a weight.",
    )
    group.whole(
        "table_others",
        8,
        "k of --table=sparse: classes outside the set that keep a weight of "
        "their own.",
        low=1,
    )
    group.switch(
        "jit_compile", False, "Compile the step with XLA; JAX always does."
    )
    group.whole(
        "steps_per_execution",
        1,
        "Steps that run in one call of the compiled function.",
        low=1,
    )
    group.switch(
        "deterministic",
        False,
        "Deterministic operations on a GPU too, slower.",
    )


COMMAND = Command(
    name="alim_keras.train",
    doc=(
        "Trains an image classifier on candidate label sets, some of which "
        "miss the true label (ALIM, NeurIPS 2023)."
    ),
    define=define,
    presets=PUBLISHED,
)
