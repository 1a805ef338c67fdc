"""Every setting of a run: its default, bounds and help, each in one place.

A frozen dataclass holds the settings that `--help` lists under one heading,
and `app.cli` makes a flag of each field; the class's docstring holds their
help. Only this folder and the commands see a `Config`; functions of the library
take the values that they need.
"""

import dataclasses

from alim_keras.app import values

_LAYOUTS = (
    "auto list wide long multi_hot counts probabilities complementary"
).split()


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Run.

    Attributes:
        run_dir: Folder of the run; the same command continues it. Without it:
            runs/<dataset>-<method>-seed<seed>-<six digits>.
        seed: Every random draw is a function of it.
        progress: How progress is shown.
    """

    run_dir: str | None = values.path()
    seed: int = values.whole(0, low=0, high=2**31 - 1)
    progress: str = values.choice("bar", "bar", "line", "none")


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Data.

    Attributes:
        dataset: digits (built in), a TFDS name such as cifar10, or labels of
            your own: a table (.csv, .jsonl, .parquet, .npz, Label Studio's
            .json) or a folder with a folder of images for each class.
        data_dir: A prepared TFDS folder, an .npz or a folder of IDX files.
            Without it the usual places are searched.
        download: Let TFDS fetch a data set that is not here.
        train_size: Train on so many images, stratified by known labels.
        image_size: Side in pixels to resize to. Without it: theirs, or 224.
    """

    dataset: str = values.dataset(default="digits")
    data_dir: str | None = values.path()
    download: bool = values.switch(default=True)
    train_size: int | None = values.count()
    image_size: int | None = values.count()


@dataclasses.dataclass(frozen=True)
class TableConfig:
    """Labels of your own.

    Attributes:
        images: Folder of the images. Without it: the table's own folder.
        format: The table's reader: a name, or FILE.py:function of your own,
            from a path to a frame of votes. Without it: by ending and keys.
        layout: A list of candidates for each item, a column for each annotator,
            a row for each answer, a column for each class (of 0 and 1, counts
            of votes, or probabilities), or a row for each class that an item
            is not of. auto goes by the names of the columns.
        id_column: Column of the items. Without it: found by name. It may be a
            dotted path into JSON, such as data.image, as all columns may.
        candidates_column: Column of --layout=list with the candidates.
        annotator_column: Column of --layout=long that says who answered.
        label_column: Column of --layout=long with the answer.
        confidence_column: Column with the confidence or score.
        header: Whether a text's first line names its columns.
        columns: Their names where --header=none: id,label.
        ids: Ids of rows without: a file of them, or a pattern: test_{:05d}.
        records: Path to the list of records in JSON, such as data.items.
        class_names: A file with a class on each line, a number C for 0 to C-1,
            or names separated by commas. Without it: those found.
        where: Take only rows with split=train,votes>2 (also != and <).
        min_votes: How many annotators must have named a candidate.
        min_confidence: Leave out answers whose confidence is lower.
        min_share: A candidate needs this share of its item's votes or scores.
        top_k: How many candidates an item has at most, the likeliest.
        top_p: The likeliest candidates that hold this share together.
        none_of_these: Answers that stand for no class, such as none,other.
        empty_set: An item without candidates: refuse the table, make all
            classes candidates, or leave it out.
        duplicates: Rows of an item that differ: refuse, unite, take the first.
        grades: Where a candidate's weight comes from: the votes for it or the
            confidences. Without it: votes, where annotators share items.
        on_bad_image: Images that cannot be read: stop, or leave items out.
        known_labels: A CSV file with the columns id and label: true labels of
            some items, for reports and --noise_rate=auto.
        known_as_sets: Train on the --known_labels in place of their sets.
        test_labels: Such a file of the items to test on, not to train on.
    """

    images: str | None = values.path()
    format: str | None = values.code()
    layout: str = values.choice("auto", *_LAYOUTS)
    id_column: str | None = values.text()
    candidates_column: str | None = values.text()
    annotator_column: str | None = values.text()
    label_column: str | None = values.text()
    confidence_column: str | None = values.text()
    header: str = values.choice("first", "first", "none")
    columns: str | None = values.text()
    ids: str | None = values.file_or_text()
    records: str | None = values.text()
    class_names: str | None = values.file_or_text()
    where: str | None = values.text()
    min_votes: int = values.count(1)
    min_confidence: float | None = values.number()
    min_share: float | None = values.share()
    top_k: int | None = values.count()
    top_p: float | None = values.share(low_open=True)
    none_of_these: str | None = values.text()
    empty_set: str = values.choice("error", "error", "all", "drop")
    duplicates: str = values.choice("error", "error", "union", "first")
    grades: str | None = values.choice(None, "none", "votes", "confidence")
    on_bad_image: str = values.choice("error", "error", "skip")
    known_labels: str | None = values.path()
    known_as_sets: bool = values.switch(default=False)
    test_labels: str | None = values.path()


@dataclasses.dataclass(frozen=True)
class CandidatesConfig:
    """Candidate sets.

    Attributes:
        protocol: flip swaps the true label out at rate --noise_level; pico
            drops it and redraws empty sets; superclass is pico within the true
            superclass. Without it: as published, mostly flip.
        ambiguity: q: the probability that a wrong label is a candidate.
        noise_level: eta: how often a simulated set misses the true label.
        candidates_file: Read the candidate sets from this table or .npz file.
        legacy_stream: Simulate with the random stream of the authors' code.
    """

    protocol: str | None = values.choice(None, "flip", "pico", "superclass")
    ambiguity: float = values.share(0.3)
    noise_level: float = values.share(0.3)
    candidates_file: str | None = values.path()
    legacy_stream: bool = values.switch(default=False)


@dataclasses.dataclass(frozen=True)
class ViewsConfig:
    """Views.

    Attributes:
        augmentation: PiCO's views, or CRDPLL's, which read --flip only.
        crop_scale: Smallest share of the image's area that a crop takes.
        flip: Share of mirrored views. Without it: 0, of one's own photos 0.5.
        jitter: Change brightness, contrast, saturation and hue.
        strong_operations: Random operations of a strong view.
        cutout: Largest side of the cutout, as share of the width.
    """

    augmentation: str = values.choice("simaugment", "simaugment", "autoaugment")
    crop_scale: float = values.share(0.5, low_open=True)
    flip: float | None = values.share()
    jitter: bool = values.switch(default=False)
    strong_operations: int = values.whole(3, low=0)
    cutout: float = values.share(0.5)


@dataclasses.dataclass(frozen=True)
class AlimConfig:
    """ALIM.

    Attributes:
        norm: How a prediction becomes a pseudo label: its largest entry, or all
            of it to the power 1/K. Without it: the method's own.
        scale_factor: K of --norm=scale.
        lam: Weight of the labels outside the set: a number, or adaptive (the
            quantile of the candidate ratio at the noise rate). 0 is the method
            without ALIM. Without it: adaptive, or from the data.
        noise_rate: What ALIM is told: a number; oracle (the simulated level);
            an estimate: votes (from several annotators), annotated (from
            --known_labels) or annotated:FILE; or auto: one of these, or else
            from predictions for unseen items. Without it: oracle; auto for
            given sets.
        warmup_epochs: e0: epochs before labels outside the set get weight.
            Without it: 15; of data of one's own a fifth of the epochs.
        update: Recompute pseudo labels in every step, or after every epoch.
        scores: Whose P stands in Eq. 3 and 6; method: as that chooses.
        pseudo_label_momentum_start: phi of the pseudo labels' moving average.
            Without it: the method's own.
        pseudo_label_momentum_end: phi at the end. Without it: as at the start.
    """

    norm: str | None = values.choice(None, "onehot", "scale")
    scale_factor: float = values.positive(1.0)
    lam: float | str | None = values.number(low=0, high=1, words=("adaptive",))
    noise_rate: float | str | None = values.noise_rate()
    warmup_epochs: int | None = values.whole(low=0)
    update: str = values.choice("step", "step", "epoch")
    scores: str = values.choice("method", "method", "classifier", "prototypes")
    pseudo_label_momentum_start: float | None = values.share()
    pseudo_label_momentum_end: float | None = values.share()


@dataclasses.dataclass(frozen=True)
class MethodConfig:
    """Method and network.

    Attributes:
        method: cc, rc, proden, lwc, lws, gce, mse, mae, sce, exp, pico, crdpll,
            irnet, pico_plus, or FILE.py:Class of your own. Without it: pico;
            proden on a frozen network.
        method_options: Further arguments of the method: name=value,name=value.
        network: small_cnn, cifar_resnet18, cifar_wide_resnet34_10, a model of
            keras.applications, or mlp for feature vectors; FILE.keras, from
            pixels in [0, 255] to a vector; hub:NAME, a preset of KerasHub or
            its folder; auto: what fits the data. Without it: small_cnn or mlp;
            auto for data of one's own.
        width: Channels of the first stage. Without it: the network's own.
        weights: Weights to start from: a file, or imagenet. Without it: random.
        train_backbone: Of a pretrained network: none (frozen: a head is trained
            on features that are computed once), all, last:K, its last K layers
            that have weights, or after:E: E epochs frozen in a run of its own,
            RUN_DIR-frozen, then all, at a tenth of the rate. Without it: none.
        mixup_weight: Weight of the mixup loss. Without it: the method's own.
        mixup_alpha: The mixup coefficient is drawn from Beta(alpha, alpha).
        head_folds: Classifiers on a frozen backbone, each trained without one
            fold, whose pseudo labels it sets; their mean is the result. 0, or
            without it: one classifier.
        contrastive_weight: Weight of the contrastive loss.
        temperature: tau of the contrastive loss.
        prototype_temperature: Of their softmax. Without it: the method's own.
        prototype_momentum: Moving average of the prototypes.
        prototype_start: First epoch, from 1, that updates the pseudo labels.
        key_momentum: Moving average of the key encoder.
        queue_size: Embeddings kept for the contrastive loss.
        embedding_dim: Width of an embedding.
    """

    method: str | None = values.code()
    method_options: str | None = values.text()
    network: str | None = values.network()
    width: int | None = values.count()
    weights: str | None = values.file_or_text()
    train_backbone: str | None = values.trained_part()
    mixup_weight: float | None = values.number(low=0)
    mixup_alpha: float = values.positive(4.0)
    head_folds: int | None = values.whole(low=0)
    contrastive_weight: float = values.number(0.5, low=0)
    temperature: float = values.positive(0.07)
    prototype_temperature: float | None = values.positive()
    prototype_momentum: float = values.share(0.99)
    prototype_start: int = values.count(1)
    key_momentum: float = values.share(0.999)
    queue_size: int = values.count(1024)
    embedding_dim: int = values.count(128)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """Optimisation and evaluation.

    Attributes:
        epochs: Passes over the training set. Without it: 80, or from the data.
        batch_size: Images in a step, all replicas. Without it: 64, or from the
            data.
        learning_rate: Of SGD, at the start. Without it: 0.05, or from the data.
        lr_schedule: Down along a cosine to a thousandth, or constant.
        momentum: Momentum of SGD.
        weight_decay: Added to the gradient as weight_decay x weight (coupled).
            Without it: 0.001, or from the data.
        holdout: Share of the training set held out, with its noisy sets.
            Without it: 0.1, or 0 where folds judge.
        select: The epoch to publish: the last, or the best covering rate or
            approximated accuracy on the held-out part.
    """

    epochs: int | None = values.count()
    batch_size: int | None = values.count()
    learning_rate: float | None = values.positive()
    lr_schedule: str = values.choice("cosine", "cosine", "constant")
    momentum: float = values.share(0.9, high_open=True)
    weight_decay: float | None = values.number(low=0)
    holdout: float | None = values.share(high_open=True)
    select: str = values.choice("last", "last", "cr", "aa")


@dataclasses.dataclass(frozen=True)
class MachineConfig:
    """Machine.

    Attributes:
        backend: Keras backend. JAX is for accelerators.
        distribute: One replica on each device of this machine, or one in each
            of many processes, with --backend=jax; see docs/distributed.md.
        replicas: Replicas of --distribute=mirrored. Without it: all devices.
        precision: Keras dtype policy. Losses and tables stay in float32.
        table: How pseudo labels are kept; sparse is for many classes.
        jit_compile: Compile the step with XLA; JAX always does.
    """

    backend: str = values.choice("tensorflow", "tensorflow", "jax")
    distribute: str = values.choice("none", "none", "mirrored", "multi_worker")
    replicas: int | None = values.count()
    precision: str = values.choice(
        "float32", "float32", "mixed_bfloat16", "mixed_float16"
    )
    table: str = values.choice("dense", "dense", "sparse")
    jit_compile: bool = values.switch(default=False)


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that decides a training run."""

    run: RunConfig = RunConfig()
    data: DataConfig = DataConfig()
    table: TableConfig = TableConfig()
    candidates: CandidatesConfig = CandidatesConfig()
    views: ViewsConfig = ViewsConfig()
    alim: AlimConfig = AlimConfig()
    method: MethodConfig = MethodConfig()
    train: TrainConfig = TrainConfig()
    machine: MachineConfig = MachineConfig()

    @classmethod
    def from_flags(cls, given):
        """Returns the configuration of a dict from each flag to its value."""
        return cls().replace(**{name: given[name] for name in cls().as_dict()})

    def replace(self, **values):
        """Returns a copy with other values, each under its flag's name."""
        groups = {}
        for name, group in vars(self).items():
            mine = {k: values.pop(k) for k in vars(group).keys() & values}
            groups[name] = dataclasses.replace(group, **mine)
        # What is left is the name of no setting: a TypeError.
        return Config(**groups, **values)

    def as_dict(self):
        """Returns a flat dict from a flag's name to its value."""
        groups = vars(self).values()
        return {k: v for group in groups for k, v in vars(group).items()}


# The dataclasses whose flags a training takes, in the order of the help.
TRAINING = tuple(type(field.default) for field in dataclasses.fields(Config))


@dataclasses.dataclass(frozen=True)
class ReopenConfig:
    """A finished run.

    Attributes:
        images: Where the images lie now, if they were moved since the run.
        data_dir: Where a data set with a name lies now, likewise.
        trust_code: Run code that run.flags names, such as a method of its own.
    """

    images: str | None = values.path()
    data_dir: str | None = values.path()
    trust_code: bool = values.switch(False)
