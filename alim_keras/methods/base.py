"""The training step that every partial label learning method shares."""

import keras
import numpy as np

from alim_keras import backend
from alim_keras import draws
from alim_keras import losses
from alim_keras import ops
from alim_keras.errors import check_ranges
from alim_keras.layers import make_table
from alim_keras.methods import exports
from alim_keras.methods import inputs
from alim_keras.metrics import covering


class PartialLabelModel(backend.Trainer, keras.Model):
    """A classifier that learns from candidate sets; base of all methods.

    A method is a subclass that overrides what differs: the attributes and
    functions below; docs/own_method.md lists them and shows one.

    Args:
        backbone: A `keras.Model` from normalised images `(B, H, W, channels)`
            to features `(B, F)`.
        num_classes: C.
        num_examples: N, the size of the training set.
        views: What makes the views inside the step, such as an
            `alim_keras.augment.Views`. Defaults to `x["weak"]` and so on, or
            the image itself.
        mean: Mean of the images in units of `[0, 1]`, one number or one per
            channel. Defaults to `0.0`.
        std: Standard deviation, likewise. Defaults to `1.0`.
        mixup_weight: Weight of the mixup loss, `a L(x', w_i) + (1 - a) L(x',
            w_j)` with the method's own L and `x' = a x_i + (1 - a) x_j`, which
            for an L linear in w is Eq. 8's. Defaults to `0.0`, no mixup.
        mixup_alpha: zeta of Beta(zeta, zeta). Defaults to `4.0`.
        pseudo_label_momentum: phi of the first epoch, and what it moves to
            linearly. Defaults to the method's `default_momentum`.
        pseudo_label_start: First epoch, counted from 1, that changes the
            table. Defaults to `1`.
        table: Where the pseudo labels are kept: `"dense"`, `"sparse"` for many
            classes, or a layer of either kind, `layers.PseudoLabelTable` or
            `layers.SparsePseudoLabelTable`. Defaults to `"dense"`.
        weight_decay: L2 coefficient of all trainable weights, biases and
            batch normalisation included, through the gradient as PyTorch's
            SGD; Keras's own is decoupled and weaker. Defaults to `0.0`.
        folds: K cross-fitted classifiers, `networks.CrossFittedHeads`: pseudo
            labels, ratios and metrics of training come from the head that did
            not see the example, all else from the mean over the heads. A
            backbone that learns sees all. Defaults to `0`, one classifier.
        seed: Seed of the random draws inside the step. Defaults to `0`.

    Called with images `(B, H, W, channels)`, uint8 or float in `[0, 255]`, of
    any size, or a training batch's dict with the key `"image"`, it returns
    class probabilities, float32 `(B, C)`; NaN where a pixel is not finite. A
    backbone of feature vectors, `(None, 1, 1, d)`, takes floats `(B, 1, 1, d)`
    or `(B, d)`.

    Training batches are `(x, y)` or `(x, y, sample_weight)`: `x` a dict with
    `"image"` and `"index"` (the example's row in the table), `y` the
    candidate sets, multi-hot `(B, C)`. For evaluation `y` is a candidate set
    or a one-hot label. Sample weights scale an example's losses; the table,
    prototypes and queue take it in all the same.

    Raises:
        ConfigError: If an argument is out of its range.
        ValueError: If the backbone has another form.
    """

    # Names of the loss parts.
    loss_names = ("cls",)
    # Views it learns from: "weak", "strong"; a second of a kind is "weak2".
    view_names = ("weak",)
    # False: it learns from the sets as they are, and ALIM refuses it.
    keeps_pseudo_labels = True
    # Whether own `encode`, `forward` and `method_losses` heed `folds`.
    takes_folds = True
    # How pseudo labels move: Eq. 4 or "scale", Eq. 5; and phi.
    default_norm = "onehot"
    default_momentum = (0.95, 0.8)
    # "before_loss", "after_loss", or "after_step" with a second forward pass.
    refresh_when = "before_loss"

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
        folds=0,
        seed=0,
        **kwargs,
    ):
        # Without autocast: mixed precision would round images first.
        kwargs.setdefault("name", type(self).__name__.lower())
        super().__init__(autocast=False, **kwargs)
        # List of C strings, for exports, or None.
        self.class_names = None
        momentum = tuple(pseudo_label_momentum or self.default_momentum)
        self.keep(
            num_classes=(num_classes, "count"),
            num_examples=(num_examples, "count"),
            mixup_weight=(mixup_weight, "weight"),
            mixup_alpha=(mixup_alpha, "positive"),
            pseudo_label_momentum=(momentum, "share"),
            pseudo_label_start=(pseudo_label_start, "count"),
            weight_decay=(weight_decay, "weight"),
            folds=(folds, "whole"),
        )
        self.backbone = backbone
        self.views = views
        self.mean = np.asarray(mean, float).tolist()
        self.std = np.asarray(std, float).tolist()
        self.seed = seed
        self.image_shape, self.feature_dim = inputs.check_backbone(backbone)
        inputs.synchronise_batch_norm(backbone)

        scale, offset = inputs.rescaling(mean, std)
        size, shape = self.image_shape[:2], (None, *self.image_shape)
        layers = keras.layers
        self.normalisation = layers.Rescaling(scale, offset, dtype="float32")
        self.normalisation.build(shape)
        self.resizing = layers.Resizing(*size, dtype="float32")
        self.resizing.build(shape)
        self.classifier = inputs.make_classifier(self)
        if self.keeps_pseudo_labels:
            table = make_table(table, num_examples, num_classes)
            table.momentum.assign(momentum[0])
            table.use_onehot.assign(float(self.default_norm == "onehot"))
            self.pseudo_label_table = table
        if mixup_weight:
            self.loss_names = (*self.loss_names, "mix")
        self.epoch = self.add_weight(
            name="epoch", shape=(), dtype="int32", trainable=False
        )
        # Share of the training that is over, as an epoch begins.
        self.progress = self.add_weight(
            name="progress", shape=(), initializer="zeros", trainable=False
        )
        self.evaluation_loss = losses.CandidateCrossentropy()
        self.total_loss = keras.metrics.Mean(name="loss")
        self.parts = {
            name: keras.metrics.Mean(name=f"{name}_loss")
            for name in self.loss_names
        }
        if self.keeps_pseudo_labels:
            self.outside = keras.metrics.Mean(name="outside")
        self.built = True

    def keep(self, **arguments):
        """Checks arguments as `check_ranges`, and keeps their values."""
        check_ranges(**arguments)
        for name, (value, _) in arguments.items():
            setattr(self, name, value)

    # What a method defines.

    def encode(self, images, training=False):
        """Returns a dict with `"logits"` `(B, C)` of normalised images."""
        return self.classify(self.backbone(images, training=training))

    def classify(self, features):
        """Returns the classifier's part of `encode`'s dict."""
        if self.folds:
            return self.classifier.outputs(features)
        return {"logits": self.classifier(features)}

    def out_of_fold(self, outputs, index):
        """Returns `encode`'s dict; with `folds`, with out-of-fold logits."""
        if not self.folds or index is None:
            return outputs
        logits = self.classifier.out_of_fold(outputs["heads"], index)
        return {**outputs, "logits": logits}

    def scores(self, outputs):
        """Returns the P of Eq. 3 and Eq. 6, `(B, C)`, from `encode`'s dict."""
        return keras.ops.softmax(outputs["logits"])

    def forward(self, batch):
        """Runs the networks on a training batch; returns `encode`'s dict."""
        outputs = self.encode(batch.views["weak"], training=True)
        return self.out_of_fold(outputs, batch.index)

    def current_targets(self, outputs, batch):
        """Returns the targets of this step's losses, `(B, C)`."""
        if not self.keeps_pseudo_labels:
            return ops.uniform_over_candidates(batch.candidates)
        if self.refresh_when == "before_loss":
            return self.refresh(outputs, batch)
        return self.pseudo_label_table.rows(batch.index, batch.candidates)

    def example_losses(self, logits, targets, candidates):
        """Returns the loss of each example, `(B,)`, from tensors `(B, C)`."""
        return keras.losses.categorical_crossentropy(
            targets, logits, from_logits=True
        )

    def classification_loss(
        self, logits, targets, candidates, sample_weight=None
    ):
        """Returns the mean of `example_losses`, a scalar."""
        values = self.example_losses(logits, targets, candidates)
        return losses.over_batch(values, sample_weight)

    def method_losses(self, outputs, targets, batch):
        """Updates the method's own state, and returns the loss parts.

        They are a dict from the names in `loss_names` to pairs (weight, loss).
        """
        rows = self.loss_rows(outputs, targets, batch)
        return {"cls": (1.0, self.classification_loss(*rows))}

    def loss_rows(self, outputs, targets, batch):
        """Returns the arguments of `classification_loss`."""
        rest = targets, batch.candidates, batch.sample_weight
        if not self.folds:
            return outputs["logits"], *rest
        heads = outputs["heads"]
        return self.classifier.loss_rows(heads, batch.index, *rest)

    def refresh(self, outputs, batch):
        """Moves the batch's pseudo labels by Eq. 3; returns them, `(B, C)`."""
        return self.pseudo_label_table.refresh(
            batch.index,
            keras.ops.stop_gradient(self.scores(outputs)),
            batch.candidates,
            active=self.epoch + 1 >= self.pseudo_label_start,
        )

    def current_candidates(self, index, candidates):
        """Returns the sets that training works with: the data's, `(B, C)`."""
        return candidates

    def after_step(self, batch):
        """Called with the step's `Batch` once the weights have moved."""
        if self.refresh_when == "after_step":
            self.refresh(self.forward(batch), batch)

    def begin_epoch(self, epoch):
        """Called as an epoch begins, with its number from 0."""

    # The step, in its order. `backend.Trainer` puts the gradient around it.

    def training_loss(self, x, y, sample_weight=None):
        """Computes one step without its gradient.

        Returns the loss, without weight decay and divided by the number of
        replicas; the weak views' probabilities; and the `inputs.Batch`.
        """
        batch = inputs.make_batch(self, x, y, sample_weight)
        outputs = self.forward(batch)
        targets = self.current_targets(outputs, batch)
        targets = keras.ops.stop_gradient(targets)
        parts = self.method_losses(outputs, targets, batch)
        if self.mixup_weight:
            loss = self.mixup_loss(targets, batch)
            parts["mix"] = (self.mixup_weight, loss)
        if self.refresh_when == "after_loss":
            self.refresh(outputs, batch)
        total = sum(weight * loss for weight, loss in parts.values())
        # A loss is divided by the number of replicas; a log is not.
        size, replicas = keras.ops.shape(batch.index)[0], backend.num_replicas()
        for name in self.loss_names:
            self.parts[name].update_state(parts[name][1] * replicas, size)
        self.total_loss.update_state(total * replicas, size)
        if self.keeps_pseudo_labels:
            inside = covering(batch.candidates, targets)
            self.outside.update_state(1.0 - inside)
        return total, keras.ops.softmax(outputs["logits"]), batch

    def mixup_loss(self, targets, batch):
        """Returns the loss of each weak view mixed with its neighbour's."""
        # The batch is in random order. Rows 0 and 1 are partners, 2 and 3 and
        # so on, so that a pair stays together over replicas; the last of an
        # odd batch gets row 0.
        size = keras.ops.shape(batch.index)[0]
        row = keras.ops.arange(size)
        partner = keras.ops.bitwise_xor(row, keras.ops.ones_like(row))
        partner = keras.ops.where(partner < size, partner, 0)
        # The larger share stays with the example itself.
        share = draws.beta(
            self.mixup_alpha, self.seed, self.epoch, batch.index, "mixup"
        )
        share = keras.ops.maximum(share, 1.0 - share)
        weak = batch.views["weak"]
        mixed = ops.mixup(weak, keras.ops.take(weak, partner, axis=0), share)
        outputs = self.encode(mixed, training=True)
        weight = 1.0 if batch.sample_weight is None else batch.sample_weight
        other, *others = (
            keras.ops.take(x, partner, axis=0)
            for x in (batch.index, targets, batch.candidates)
        )
        pair = keras.ops.stack([batch.index, other], axis=1)

        def loss(share, targets, sets):
            part = inputs.Batch(None, pair, sets, weight * share)
            rows = self.loss_rows(outputs, targets, part)
            return self.classification_loss(*rows)

        own = loss(share, targets, batch.candidates)
        return own + loss(1.0 - share, *others)

    # Training with Keras.

    def enter_epoch(self, epoch, epochs):
        """Sets the schedules for an epoch, counted from 0, of `epochs`."""
        self.epoch.assign(epoch)
        self.progress.assign(epoch / epochs)
        if self.keeps_pseudo_labels:
            start, end = self.pseudo_label_momentum
            phi = start + (end - start) * epoch / epochs
            self.pseudo_label_table.momentum.assign(phi)
            self.pseudo_label_table.forget_ratios()
        self.begin_epoch(epoch)

    def fit(self, x=None, *args, callbacks=None, check_pixels=True, **kwargs):
        """`keras.Model.fit`; `check_pixels` refuses images that look scaled."""
        inputs.check_fit(self, x, kwargs)
        if check_pixels:
            inputs.check_images(x, kwargs.get("validation_data"))
        self.class_names = inputs.class_names(x) or self.class_names
        counter = getattr(x, "epoch_counter", None)
        if counter is not None:
            # It shuffles itself; Keras would warn.
            kwargs.setdefault("shuffle", False)

        def begin(epoch, logs):
            if counter is not None:
                counter.epoch = epoch
            self.enter_epoch(epoch, clock.params["epochs"])

        # The epoch that Keras counts, also after `initial_epoch=` or a backup.
        clock = keras.callbacks.LambdaCallback(on_epoch_begin=begin)
        callbacks = [clock, *keras.tree.flatten(callbacks or [])]
        return super().fit(x, *args, callbacks=callbacks, **kwargs)

    def train_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        """As Keras's, without `class_weight`."""
        inputs.check_fit(self, x, kwargs)
        return super().train_on_batch(x, y, sample_weight, **kwargs)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Returns the evaluation loss, for any candidate set."""
        inputs.check_sets(y, self.num_classes)
        return self.evaluation_loss(y, y_pred, sample_weight=sample_weight)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        inputs.check_sets(y, self.num_classes)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    # Inference and export.

    @property
    def pseudo_labels(self):
        """The table of current labels `(N, C)`, with `shape` and `numpy()`."""
        if not self.keeps_pseudo_labels:
            raise AttributeError(
                f"{type(self).__name__} keeps no pseudo labels; it learns from "
                "the candidate sets as they are. Use predict(images)."
            )
        return self.pseudo_label_table

    @property
    def takes_features(self):
        """Whether the backbone is for feature vectors: images of one pixel."""
        return tuple(self.image_shape[:2]) == (1, 1)

    def prepare(self, images):
        """Resizes to the backbone's size if needed, and normalises."""
        images = keras.ops.cast(images, "float32")
        if self.takes_features:
            inputs.check_features(images.shape, self.image_shape)
            images = keras.ops.reshape(images, (-1, *self.image_shape))
        elif tuple(images.shape[1:3]) != tuple(self.image_shape[:2]):
            images = self.resizing(images)
        return self.normalisation(images)

    def call(self, images, training=False):
        if isinstance(images, dict):
            images = images["image"] if "image" in images else images["weak"]
        images = self.prepare(images)
        logits = self.encode(images, training=training)["logits"]
        # ReLU and pooling turn NaN pixels into ordinary features.
        finite = keras.ops.all(keras.ops.isfinite(images), axis=(1, 2, 3))
        finite = keras.ops.expand_dims(finite, 1)
        return keras.ops.where(finite, keras.ops.softmax(logits), float("nan"))

    @property
    def fold(self):
        """The weight `(N,)` of each example's fold; assign it before `fit`."""
        return self.classifier.fold

    def infer_scores(self, images, index=None):
        """`scores` in inference mode, out of fold for an `index` `(B,)`."""
        outputs = self.encode(self.prepare(images), training=False)
        return self.scores(self.out_of_fold(outputs, index))

    def held_out_logits(self, x):
        """Logits `(B, C)` likewise, of a dict with `"image"` and `"index"`."""
        outputs = self.encode(self.prepare(x["image"]), training=False)
        return self.out_of_fold(outputs, x["index"])["logits"]

    def inference_network(self, resizes=True):
        """Returns the classifier alone: images to probabilities.

        It shares its weights with this model, but holds the mean of `folds`.
        It takes images of any size, of the backbone's without `resizes`, or
        feature vectors `(B, d)`.
        """
        shape = self.image_shape
        if self.takes_features:
            start = keras.Input(shape[-1:], name="features")
            x = keras.layers.Reshape(shape)(start)
        elif resizes:
            start = keras.Input((None, None, shape[-1]), name="images")
            x = self.resizing(start)
        else:
            x = start = keras.Input(shape, name="images")
        x = self.backbone(self.normalisation(x), training=False)
        head = self.classifier.merged() if self.folds else self.classifier
        x = keras.layers.Softmax(name="probabilities", dtype="float32")(head(x))
        return keras.Model(start, x, name="classifier")

    def export(self, filepath, format="tf_saved_model", class_names=None):
        """Writes the classifier alone for other programs.

        Args:
            filepath: Folder of the SavedModel, or file.
            format: `"tf_saved_model"`, `"onnx"` or `"litert"`. Where nothing
                can write it, `EnvironmentLacksError` is raised.
            class_names: C strings of one line, which go with it;
                docs/embedding.md says where. Defaults to the data's.
        """
        exports.write(self, filepath, format, class_names)

    def get_config(self):
        serialise = keras.saving.serialize_keras_object
        config = {**super().get_config(), "class_names": self.class_names}
        # An argument is an attribute of the same name. Where a layer or a
        # weight made from it has that name, it is not saved.
        for name in inputs.arguments_of(type(self)):
            if hasattr(self, name) and inputs.is_plain(getattr(self, name)):
                config[name] = getattr(self, name)
        config["backbone"] = serialise(self.backbone)
        config["views"] = serialise(self.views) if self.views else None
        if self.keeps_pseudo_labels:
            config["table"] = serialise(self.pseudo_label_table)
        return config

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        deserialise = keras.saving.deserialize_keras_object
        for name in ("backbone", "views", "table"):
            if isinstance(config.get(name), dict):
                config[name] = deserialise(config[name])
        names = config.pop("class_names", None)
        model = cls(**config)
        model.class_names = names
        return model
