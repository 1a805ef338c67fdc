"""The training step that every partial label learning method shares."""

import keras
import numpy as np

from alim_keras import backend
from alim_keras import losses
from alim_keras import ops
from alim_keras.layers import make_table
from alim_keras.methods import checks
from alim_keras.methods import mixing
from alim_keras.methods.batch import Batch
from alim_keras.methods.clock import EpochClock
from alim_keras.methods.serving import Serving
from alim_keras.metrics import covering
from alim_keras.networks import classifier_head


class PartialLabelModel(Serving, backend.Trainer, keras.Model):
    """A classifier that learns from candidate sets; base of all methods.

    It owns the pseudo-label table, mixup and coupled weight decay. A method
    is a subclass that overrides `encode` (its forward pass), `scores` (the P
    of Eq. 3 and Eq. 6) and `method_losses` (its losses, and the updates of
    its own state).

    Args:
        backbone: A `keras.Model` from normalised images `(B, H, W, channels)`
            to features `(B, F)`.
        num_classes: C.
        num_examples: N, the size of the training set.
        views: An `alim_keras.augment.Views`, which makes the weak and the
            strong view inside the step. None takes `x["weak"]` and
            `x["strong"]`, or the image itself where they are missing.
        mean: Per-channel mean of the images, in units of `[0, 1]`. Defaults
            to `0.0`.
        std: Per-channel standard deviation, likewise. Defaults to `1.0`.
        mixup_weight: Weight of the mixup loss; 0 leaves mixup out. Defaults
            to `0.0`.
        mixup_alpha: zeta of Beta(zeta, zeta). Defaults to `4.0`.
        pseudo_label_momentum: Pair: phi of the first epoch and the value it
            moves to, linearly. Defaults to `(0.95, 0.8)`.
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
        seed: Seed of the random draws inside the step. Defaults to `0`.

    Call arguments:
        inputs: Images `(B, H, W, channels)`, uint8 or float in `[0, 255]`,
            or a training batch's dict with the key `"image"`. Images of
            another size are resized.

    Returns:
        Class probabilities, float32 `(B, C)`.

    Training batches are `(x, y)` or `(x, y, sample_weight)`: `x` a dict with
    `"image"` and `"index"` (the example's row in the table), `y` the
    candidate sets, multi-hot `(B, C)`. For evaluation `y` is a candidate set
    or a one-hot label. Sample weights scale an example's losses; the table,
    prototypes and queue take it in all the same.
    """

    loss_names = ("cls",)

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
        pseudo_label_momentum=(0.95, 0.8),
        pseudo_label_start=1,
        table="dense",
        weight_decay=0.0,
        seed=0,
        **kwargs,
    ):
        checks.check_ranges(
            num_classes=(num_classes, "count"),
            num_examples=(num_examples, "count"),
            mixup_weight=(mixup_weight, "weight"),
            mixup_alpha=(mixup_alpha, "positive"),
            pseudo_label_momentum=(pseudo_label_momentum, "share"),
            pseudo_label_start=(pseudo_label_start, "count"),
            weight_decay=(weight_decay, "weight"),
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
        self.pseudo_label_table = make_table(table, num_examples, num_classes)
        self.pseudo_label_table.momentum.assign(pseudo_label_momentum[0])
        if mixup_weight:
            self.loss_names = (*self.loss_names, "mix")
            self.mixup_quantile = mixing.BetaQuantile(mixup_alpha)
        self.epoch = self.add_weight(
            name="epoch", shape=(), dtype="int32", trainable=False
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
        self.outside = keras.metrics.Mean(name="outside")
        self.built = True

    @property
    def pseudo_labels(self):
        """The table `(N, C)`: what the model believes of every example.

        It has `shape` and `numpy()`; a sparse table is made dense by
        `numpy()` only.
        """
        return self.pseudo_label_table.pseudo_labels

    @property
    def training_logs(self):
        """Names of the logs that exist in training only."""
        return {part.name for part in self.parts.values()} | {"outside"}

    def encode(self, images, training=False):
        """Runs the networks on normalised images.

        Returns:
            A dict with at least `"logits"`, float32 `(B, C)`.
        """
        features = self.backbone(images, training=training)
        return {"logits": self.classifier(features)}

    def scores(self, outputs):
        """Returns the P of Eq. 3 and Eq. 6, `(B, C)`, from `encode`'s dict."""
        return keras.ops.softmax(outputs["logits"])

    def method_losses(self, outputs, targets, batch):
        """Returns the loss parts, and updates the method's own state.

        Args:
            outputs: `encode` of the weak views, in training mode.
            targets: Pseudo labels of the batch, `(B, C)`, without gradient.
            batch: A `Batch`.

        Returns:
            A dict from the names in `loss_names` to pairs (weight, loss).
        """
        loss = self.cross_entropy(
            targets, outputs["logits"], sample_weight=batch.sample_weight
        )
        return {"cls": (1.0, loss)}

    def call(self, inputs, training=False):
        images = inputs
        if isinstance(inputs, dict):
            images = inputs["image"] if "image" in inputs else inputs["weak"]
        outputs = self.encode(self.prepare(images), training=training)
        return keras.ops.softmax(outputs["logits"])

    def prepare(self, images):
        """Resizes to the backbone's size if needed, and normalises."""
        images = keras.ops.cast(images, "float32")
        if tuple(images.shape[1:3]) != tuple(self.image_shape[:2]):
            images = self.resizing(images)
        return self.normalisation(images)

    def training_loss(self, x, y, sample_weight=None):
        """One step without its gradient.

        Returns:
            The loss, without weight decay and divided by the number of
            replicas, and the weak views' probabilities `(B, C)`.
        """
        batch = Batch.of(self, x, y, sample_weight)
        outputs = self.encode(batch.weak, training=True)
        targets = self.pseudo_label_table.refresh(
            batch.index,
            keras.ops.stop_gradient(self.scores(outputs)),
            batch.candidates,
            active=self.epoch + 1 >= self.pseudo_label_start,
        )
        targets = keras.ops.stop_gradient(targets)
        parts = self.method_losses(outputs, targets, batch)
        if self.mixup_weight:
            loss = self._mixup_loss(targets, batch)
            parts["mix"] = (self.mixup_weight, loss)
        total = sum(weight * loss for weight, loss in parts.values())
        self._track(total, parts, targets, batch)
        return total, keras.ops.softmax(outputs["logits"])

    def mixup_partner(self, batch_size):
        """Which example of the batch each one is mixed with, `(B,)`.

        Neighbours: the batch is in random order already, and a pair stays
        together over replicas. The reference draws a second batch instead.
        """
        return mixing.neighbour(batch_size)

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

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Evaluation loss: `-log sum_{c in S} P_c`, for any candidate set."""
        checks.check_sets(y, self.num_classes)
        return self.evaluation_loss(y, y_pred, sample_weight=sample_weight)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        checks.check_sets(y, self.num_classes)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        **kwargs,
    ):
        """`keras.Model.fit`, with the epoch made known to step and data."""
        checks.check_fit(self, x, kwargs)
        counter = getattr(x, "epoch_counter", None)
        if counter is not None:
            # It shuffles itself; Keras would warn.
            kwargs.setdefault("shuffle", False)
        callbacks = EpochClock(counter).ahead_of(callbacks, self)
        return super().fit(
            x, y, batch_size, epochs, verbose, callbacks, **kwargs
        )

    def train_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        """As Keras's, without `class_weight`."""
        checks.check_fit(self, x, kwargs)
        return super().train_on_batch(x, y, sample_weight, **kwargs)

    def _mixup_loss(self, targets, batch):
        coefficient = mixing.coefficient(
            self.mixup_quantile, self.seed, self.epoch, batch.index
        )
        partner = self.mixup_partner(keras.ops.shape(batch.index)[0])

        def mixed(rows):
            other = keras.ops.take(rows, partner, axis=0)
            return ops.mixup(rows, other, coefficient)

        logits = self.encode(mixed(batch.weak), training=True)["logits"]
        return self.cross_entropy(
            mixed(targets), logits, sample_weight=batch.sample_weight
        )

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
            "table": serialise(self.pseudo_label_table),
            "weight_decay": self.weight_decay,
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
