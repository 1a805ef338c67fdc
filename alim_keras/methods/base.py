"""The training step that every partial label learning method shares."""

import keras
import numpy as np

from alim_keras import backend
from alim_keras import losses
from alim_keras.errors import check_ranges
from alim_keras.layers import ClassPrior
from alim_keras.methods import checks
from alim_keras.methods import mixing
from alim_keras.methods.batch import Batch
from alim_keras.methods.fitting import Fitting
from alim_keras.methods.labelling import Labelling
from alim_keras.methods.mixing import Mixup
from alim_keras.methods.serving import Serving
from alim_keras.metrics import covering
from alim_keras.networks import classifier_head


class PartialLabelModel(
    Labelling, Mixup, Fitting, Serving, backend.Trainer, keras.Model
):
    """A classifier that learns from candidate sets; base of all methods.

    It owns the pseudo-label table, mixup, logit adjustment and coupled weight
    decay. A method is a subclass that says what differs:

    - `encode`, the networks; `scores`, the P of Eq. 3 and Eq. 6;
    - `classification_loss`, its loss against targets, which mixup uses too;
    - `method_losses`, all its loss parts (named in `loss_names`), and the
      updates of its own state;
    - `view_names`, the views of an example that it learns from: `"weak"`,
      `"strong"`, and more of a kind as `"weak2"`, `"strong2"`;
    - `default_norm` and `default_momentum`, how its pseudo labels move, and
      `refresh_when`: `"before_loss"`, `"after_loss"`, or `"after_step"` with a
      second forward pass;
    - `keeps_pseudo_labels = False`, for a method that learns from the sets as
      they are; its targets are `S / |S|`, and ALIM refuses it.

    docs/own_method.md shows one.

    Args:
        backbone: A `keras.Model` from normalised images `(B, H, W, channels)`
            to features `(B, F)`.
        num_classes: C.
        num_examples: N, the size of the training set.
        views: An `alim_keras.augment.Views`, which makes the views inside
            the step. None takes `x["weak"]` and so on, or the image itself
            where they are missing.
        mean: Per-channel mean of the images, in units of `[0, 1]`. Defaults
            to `0.0`.
        std: Per-channel standard deviation, likewise. Defaults to `1.0`.
        mixup_weight: Weight of the mixup loss, that is `a L(x', w_i) + (1 -
            a) L(x', w_j)` with the method's own loss L and `x' = a x_i + (1 -
            a) x_j`; for a loss linear in the targets it is Eq. 8's. 0 leaves
            mixup out. Defaults to `0.0`.
        mixup_alpha: zeta of Beta(zeta, zeta). Defaults to `4.0`.
        pseudo_label_momentum: Pair: phi of the first epoch and the value it
            moves to, linearly. Defaults to the method's own.
        pseudo_label_start: First epoch, counted from 1, that changes the
            table. Defaults to `1`.
        table: Where the pseudo labels are kept: `"dense"`, `4 N C` bytes;
            `"sparse"`, for many classes; or a layer, see
            `layers.PseudoLabelTable` and `layers.SparsePseudoLabelTable`,
            which says for what sets `"sparse"` is made. Defaults to
            `"dense"`.
        weight_decay: L2 coefficient of all trainable weights, biases and
            batch normalisation included, through the gradient (as PyTorch's
            SGD; Keras's own `weight_decay` is decoupled, which is about ten
            times weaker at momentum 0.9). Defaults to `0.0`.
        logit_adjustment: tau of Menon et al. (2021), for data in which some
            classes are rare: the loss sees `logits + tau log(prior)`, with the
            prior a moving average of the targets. Defaults to `0.0`.
        seed: Seed of the random draws inside the step. Defaults to `0`.

    Call arguments:
        inputs: Images `(B, H, W, channels)`, uint8 or float in `[0, 255]`,
            or a training batch's dict with the key `"image"`. Images of
            another size are resized. For a backbone of feature vectors,
            `(None, 1, 1, d)`, floats `(B, 1, 1, d)` or `(B, d)`.

    Returns:
        Class probabilities, float32 `(B, C)`.

    Training batches are `(x, y)` or `(x, y, sample_weight)`: `x` a dict with
    `"image"` and `"index"` (the example's row in the table), `y` the
    candidate sets, multi-hot `(B, C)`. For evaluation `y` is a candidate set
    or a one-hot label. Sample weights scale an example's losses; the table,
    prototypes and queue take it in all the same.
    """

    loss_names = ("cls",)
    view_names = ("weak",)

    def __init__(
        self,
        backbone,
        num_classes,
        num_examples,
        *,
        views=None,
        mean=0.0,
        std=1.0,
        mixup_weight=0.0,
        mixup_alpha=4.0,
        pseudo_label_momentum=None,
        pseudo_label_start=1,
        table="dense",
        weight_decay=0.0,
        logit_adjustment=0.0,
        seed=0,
        **kwargs,
    ):
        if pseudo_label_momentum is None:
            pseudo_label_momentum = self.default_momentum
        check_ranges(
            num_classes=(num_classes, "count"),
            num_examples=(num_examples, "count"),
            mixup_weight=(mixup_weight, "weight"),
            mixup_alpha=(mixup_alpha, "positive"),
            pseudo_label_momentum=(pseudo_label_momentum, "share"),
            pseudo_label_start=(pseudo_label_start, "count"),
            weight_decay=(weight_decay, "weight"),
            logit_adjustment=(logit_adjustment, "weight"),
        )
        # Not even a mixed precision may round images before `prepare`.
        super().__init__(autocast=False, **kwargs)
        self.backbone = backbone
        self.num_classes = num_classes
        self.num_examples = num_examples
        self.views = views
        self.mean = np.asarray(mean, float).tolist()
        self.std = np.asarray(std, float).tolist()
        self.mixup_weight = mixup_weight
        self.mixup_alpha = mixup_alpha
        self.pseudo_label_momentum = tuple(pseudo_label_momentum)
        self.pseudo_label_start = pseudo_label_start
        self.weight_decay = weight_decay
        self.logit_adjustment = logit_adjustment
        self.seed = seed
        self.image_shape, self.feature_dim = checks.check_backbone(backbone)
        checks.synchronise_batch_norm(backbone)

        scale, offset = checks.rescaling(mean, std)
        self.normalisation = keras.layers.Rescaling(
            scale, offset, dtype="float32"
        )
        self.normalisation.build((None, *self.image_shape))
        self.resizing = keras.layers.Resizing(
            *self.image_shape[:2], dtype="float32"
        )
        self.resizing.build((None, *self.image_shape))
        self.classifier = classifier_head(self.feature_dim, num_classes)
        if self.keeps_pseudo_labels:
            self._add_table(table)
        if mixup_weight:
            self.loss_names = (*self.loss_names, "mix")
            self.mixup_quantile = mixing.BetaQuantile(mixup_alpha)
        if logit_adjustment:
            self.class_prior = ClassPrior(num_classes, name="class_prior")
        self.epoch = self.add_weight(
            name="epoch", shape=(), dtype="int32", trainable=False
        )
        # Share of the training that is over, as an epoch begins.
        self.progress = self.add_weight(
            name="progress", shape=(), initializer="zeros", trainable=False
        )
        # Step at which each part of the loss first became NaN or infinite.
        self.non_finite_step = self.add_weight(
            name="non_finite_step",
            shape=(len(self.loss_names),),
            initializer=keras.initializers.Constant(-1),
            dtype=backend.INTEGER,
            trainable=False,
        )
        self.cross_entropy = keras.losses.CategoricalCrossentropy(
            from_logits=True
        )
        self.evaluation_loss = losses.CandidateCrossentropy()
        self.parts = {
            name: keras.metrics.Mean(name=f"{name}_loss")
            for name in self.loss_names
        }
        if self.keeps_pseudo_labels:
            self.outside = keras.metrics.Mean(name="outside")
        self.built = True

    @property
    def training_logs(self):
        """Names of the logs that exist in training only."""
        names = {part.name for part in self.parts.values()}
        return names | ({"outside"} if self.keeps_pseudo_labels else set())

    def encode(self, images, training=False):
        """Runs the networks on normalised images.

        Returns:
            A dict with at least `"logits"`, float32 `(B, C)`.
        """
        features = self.backbone(images, training=training)
        return {"logits": self.classifier(features)}

    @classmethod
    def state_bytes(cls, num_examples, num_classes):
        """Returns the bytes of what it keeps beside the table, by name."""
        return {}

    def begin_epoch(self, epoch):
        """Called as an epoch begins, with its number from 0."""

    def forward(self, batch):
        """Runs the networks on a training batch; returns `encode`'s dict."""
        return self.encode(batch.weak, training=True)

    def classification_loss(
        self, logits, targets, candidates, sample_weight=None
    ):
        """Returns the loss of logits `(B, C)`, a scalar.

        Args:
            logits: Tensor `(B, C)`, adjusted if `logit_adjustment` asks so.
            targets: What `current_targets` gave, `(B, C)`.
            candidates: Multi-hot tensor `(B, C)`.
            sample_weight: `(B,)` or None.
        """
        return self.cross_entropy(targets, logits, sample_weight=sample_weight)

    def method_losses(self, outputs, targets, batch):
        """Returns the loss parts, and updates the method's own state.

        Args:
            outputs: What `forward` returned.
            targets: What `current_targets` returned, without gradient.
            batch: A `Batch`.

        Returns:
            A dict from the names in `loss_names` to pairs (weight, loss).
        """
        loss = self.classification_loss(
            self.adjusted(outputs["logits"]),
            targets,
            batch.candidates,
            batch.sample_weight,
        )
        return {"cls": (1.0, loss)}

    def adjusted(self, logits):
        """Returns the logits that the losses see; see `logit_adjustment`."""
        if not self.logit_adjustment:
            return logits
        return logits + self.logit_adjustment * self.class_prior.log()

    def call(self, inputs, training=False):
        images = inputs
        if isinstance(inputs, dict):
            images = inputs["image"] if "image" in inputs else inputs["weak"]
        outputs = self.encode(self.prepare(images), training=training)
        return keras.ops.softmax(outputs["logits"])

    def training_loss(self, x, y, sample_weight=None):
        """One step without its gradient.

        Returns:
            The loss, without weight decay and divided by the number of
            replicas; the weak views' probabilities `(B, C)`; and the batch as
            a dict, for `after_step`.
        """
        batch = Batch.of(self, x, y, sample_weight)
        outputs = self.forward(batch)
        targets = self.current_targets(outputs, batch)
        targets = keras.ops.stop_gradient(targets)
        if self.logit_adjustment:
            self.class_prior.update(targets)
        parts = self.method_losses(outputs, targets, batch)
        if self.mixup_weight:
            loss = self._mixup_loss(targets, batch)
            parts["mix"] = (self.mixup_weight, loss)
        if self.refresh_when == "after_loss":
            self.refresh(outputs, batch)
        total = sum(weight * loss for weight, loss in parts.values())
        self._track(total, parts, targets, batch)
        return total, keras.ops.softmax(outputs["logits"]), vars(batch)

    def regularisation(self):
        """Coupled weight decay, plus what the layers ask for themselves."""
        total = sum(self.losses) if self.losses else 0.0
        if self.weight_decay:
            squares = sum(
                keras.ops.sum(keras.ops.square(weight))
                for weight in self.trainable_variables
            )
            total = total + 0.5 * self.weight_decay * squares
        return total

    def _track(self, total, parts, targets, batch):
        size = keras.ops.shape(batch.index)[0]
        replicas = backend.num_replicas()
        names = self.loss_names
        values = [*(parts[name][1] for name in names), total]
        values = checks.with_statistics(values, self.backbone)
        values = [value * replicas for value in values]
        for name, value in zip(names, values):
            self.parts[name].update_state(value, sample_weight=size)
        self._loss_tracker.update_state(values.pop(), sample_weight=size)
        if self.keeps_pseudo_labels:
            inside = covering(batch.candidates, targets)
            self.outside.update_state(1.0 - inside)
        self.non_finite_step.assign(
            checks.first_non_finite(
                self.non_finite_step, values, self.optimizer.iterations
            )
        )

    def get_config(self):
        serialise = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "backbone": serialise(self.backbone),
            "num_classes": self.num_classes,
            "num_examples": self.num_examples,
            "views": serialise(self.views) if self.views else None,
            "mean": self.mean,
            "std": self.std,
            "mixup_weight": self.mixup_weight,
            "mixup_alpha": self.mixup_alpha,
            "pseudo_label_momentum": self.pseudo_label_momentum,
            "pseudo_label_start": self.pseudo_label_start,
            "table": serialise(self.pseudo_label_table)
            if self.keeps_pseudo_labels
            else "dense",
            "weight_decay": self.weight_decay,
            "logit_adjustment": self.logit_adjustment,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        deserialise = keras.saving.deserialize_keras_object
        for name in ("backbone", "views", "table"):
            if isinstance(config.get(name), dict):
                config[name] = deserialise(config[name])
        return cls(**config)
