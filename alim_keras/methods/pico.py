"""PiCO: contrastive partial label learning with prototypes; ALIM's default."""

import keras

from alim_keras import backend
from alim_keras import losses
from alim_keras import ops
from alim_keras.errors import check_choice
from alim_keras.layers import EmbeddingQueue
from alim_keras.layers import Prototypes
from alim_keras.methods import inputs
from alim_keras.methods.base import PartialLabelModel
from alim_keras.networks import projection_head


@keras.saving.register_keras_serializable(package="alim_keras")
class PiCO(PartialLabelModel):
    """PiCO as ALIM's authors train it; with `callbacks.ALIM` it is ALIM.

    A step: classify and embed the weak views; update the pseudo labels; move
    the prototypes and the key encoder; embed the strong views with the key
    encoder; contrast the weak embeddings with both views of the global batch
    and the queue, where equal pseudo classes are positives. The loss is
    `cls + contrastive_weight * cont + mixup_weight * mix`.

    Args:
        *args: See `PartialLabelModel`, and for all not listed here.
        embedding_dim: Size of the embeddings. Defaults to `128`.
        queue_size: Embeddings kept from earlier batches. Defaults to `8192`.
        key_momentum: Of the key encoder's moving average, over parameters
            only; its batch normalisation keeps statistics of its own.
            Defaults to `0.999`.
        prototype_momentum: Of the class means. Defaults to `0.99`.
        temperature: tau of the contrastive loss. Defaults to `0.07`.
        prototype_temperature: Of the softmax over cosine similarities to the
            prototypes. Defaults to `0.07`.
        scores_from: `"prototypes"`, as in the authors' code, or
            `"classifier"`, as in the paper: the P of Eq. 3 and Eq. 6.
            Defaults to `"prototypes"`.
        contrastive_weight: Defaults to `0.5`.
        mixup_weight: Defaults to `1.0`; ALIM's setting. 0 turns mixup off.

    Example:

    ```python
    model = alim_keras.PiCO(
        alim_keras.networks.small_cnn((28, 28, 1)), num_classes=10,
        num_examples=len(images), views=alim_keras.augment.Views())
    model.compile(optimizer=keras.optimizers.SGD(0.01, momentum=0.9))
    data = alim_keras.data.train_dataset(images, candidates, batch_size=128)
    model.fit(data, epochs=20, callbacks=[
        alim_keras.callbacks.ALIM(noise_rate=0.3, warmup_epochs=5)])
    ```

    References:
    - [Wang et al., 2022](https://arxiv.org/abs/2201.08984) (PiCO)
    - [Xu et al., 2023](https://arxiv.org/abs/2301.12077) (ALIM)
    """

    options = (
        *("embedding_dim", "queue_size", "key_momentum", "prototype_momentum"),
        *("temperature", "prototype_temperature", "scores_from"),
        "contrastive_weight",
    )
    loss_names = ("cls", "cont")
    view_names = ("weak", "strong")
    takes_folds = True

    def __init__(
        self,
        *args,
        embedding_dim=128,
        queue_size=8192,
        key_momentum=0.999,
        prototype_momentum=0.99,
        temperature=0.07,
        prototype_temperature=0.07,
        scores_from="prototypes",
        contrastive_weight=0.5,
        mixup_weight=1.0,
        **kwargs,
    ):
        check_choice("scores_from", scores_from, ("prototypes", "classifier"))
        super().__init__(*args, mixup_weight=mixup_weight, **kwargs)
        self.scores_from = scores_from
        self.keep(
            embedding_dim=(embedding_dim, "count"),
            queue_size=(queue_size, "count"),
            key_momentum=(key_momentum, "share"),
            prototype_momentum=(prototype_momentum, "share"),
            temperature=(temperature, "positive"),
            prototype_temperature=(prototype_temperature, "positive"),
            contrastive_weight=(contrastive_weight, "weight"),
        )
        self.projection = projection_head(self.feature_dim, embedding_dim)
        self.key_encoder = self._key_encoder()
        classes = self.num_classes
        self.prototypes = Prototypes(
            classes, embedding_dim, prototype_momentum, name="prototypes"
        )
        self.queue = EmbeddingQueue(queue_size, embedding_dim, name="queue")
        self.contrastive_loss = losses.QueueContrastive(classes, temperature)

    def encode(self, images, training=False):
        features = self.backbone(images, training=training)
        embeddings = ops.unit_norm(self.projection(features))
        # With the prototypes as they were before this batch.
        similarities = self.prototypes(keras.ops.stop_gradient(embeddings))
        return {
            **self.classify(features),
            "embeddings": embeddings,
            "similarities": similarities,
        }

    def scores(self, outputs):
        if self.scores_from == "classifier":
            return keras.ops.softmax(outputs["logits"])
        similarities = outputs["similarities"]
        return keras.ops.softmax(similarities / self.prototype_temperature)

    def method_losses(self, outputs, targets, batch):
        parts = super().method_losses(outputs, targets, batch)
        pseudo_class = self.pseudo_class(outputs, batch)
        embeddings = outputs["embeddings"]
        self.prototypes.update(
            keras.ops.stop_gradient(embeddings), pseudo_class
        )
        loss = self._contrast(
            embeddings, self.keys(batch), pseudo_class, batch.sample_weight
        )
        parts["cont"] = (self.contrastive_weight, loss)
        return parts

    def keys(self, batch):
        """Moves the key encoder, then embeds the strong views with it."""
        m = self.key_momentum
        for key, query in self.key_and_query():
            key.assign(m * key + (1.0 - m) * keras.ops.stop_gradient(query))
        keys = self.key_encoder(batch.views["strong"], training=True)
        return keras.ops.stop_gradient(ops.unit_norm(keys))

    def pseudo_class(self, outputs, batch):
        """Most likely class under `(S + lambda (1 - S)) P`, `(B,)` integers."""
        lam = self.pseudo_label_table.lam_of(batch.index)
        z = ops.weighted_probabilities(
            keras.ops.softmax(outputs["logits"]), batch.candidates, lam
        )
        return keras.ops.cast(keras.ops.argmax(z, axis=-1), backend.INTEGER)

    def _contrast(self, embeddings, keys, pseudo_class, sample_weight):
        all_embeddings, all_keys, all_classes = backend.all_gather(
            embeddings, keys, pseudo_class
        )
        entries = keras.ops.concatenate([all_embeddings, all_keys])
        classes = keras.ops.concatenate([all_classes, all_classes])
        is_self, _ = losses.own_places(pseudo_class, all_classes, entries)
        positives = losses.positive_mask(pseudo_class, classes)
        queue = keras.ops.convert_to_tensor(self.queue.embeddings)
        mask = losses.contrast_mask(positives, is_self)
        similarities = keras.ops.matmul(
            embeddings, keras.ops.transpose(entries)
        )
        loss = self.contrastive_loss(
            (mask, pseudo_class, self.queue.labels),
            (similarities, embeddings, queue),
            sample_weight=sample_weight,
        )
        self.queue.enqueue(all_keys, all_classes)
        return loss

    def _key_encoder(self):
        def copy(network):
            twin = network.__class__.from_config(network.get_config())
            twin.set_weights(network.get_weights())
            inputs.synchronise_batch_norm(twin)
            return twin

        parts = [copy(self.backbone), copy(self.projection)]
        encoder = keras.Sequential(
            [keras.Input(self.image_shape), *parts], name="key_encoder"
        )
        _freeze(encoder)
        return encoder

    @property
    def trainable(self):
        """Whether the query encoder learns; the key encoder never does."""
        return keras.Model.trainable.fget(self)

    @trainable.setter
    def trainable(self, value):
        keras.Model.trainable.fset(self, value)
        if hasattr(self, "key_encoder"):
            keras.Model.trainable.fset(self.key_encoder, True)
            _freeze(self.key_encoder)

    def key_and_query(self):
        """Pairs of key and query parameters, without batch statistics."""
        twin, projection = self.key_encoder.layers
        pairs = zip(
            twin.weights + projection.weights,
            self.backbone.weights + self.projection.weights,
        )
        return [(k, q) for k, q in pairs if q.trainable]


def _freeze(network):
    # `network.trainable = False` would also put its batch normalisation into
    # inference mode.
    for variable in network.trainable_variables:
        variable.trainable = False
