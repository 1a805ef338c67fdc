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
        embedding_dim: D. Defaults to `128`.
        queue_size: Embeddings kept from earlier batches. Defaults to `8192`.
        key_momentum: Of the key encoder's moving average, which leaves the
            statistics of its batch normalisation alone. Defaults to `0.999`.
        prototype_momentum: Of the class means. Defaults to `0.99`.
        temperature: tau of the contrastive loss. Defaults to `0.07`.
        prototype_temperature: Of the softmax over cosine similarities to the
            prototypes. Defaults to `0.07`.
        scores_from: P of Eq. 3 and Eq. 6: `"prototypes"`, as in the authors'
            code, or `"classifier"`, as in the paper. Defaults to
            `"prototypes"`.
        contrastive_weight: Defaults to `0.5`.
        mixup_weight: Defaults to `1.0`, ALIM's setting.

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
        layers = [keras.Input(self.image_shape)]
        for network in (self.backbone, self.projection):
            twin = network.__class__.from_config(network.get_config())
            twin.set_weights(network.get_weights())
            layers.append(twin)
        self.key_encoder = keras.Sequential(layers, name="key_encoder")
        inputs.synchronise_batch_norm(self.key_encoder)
        _freeze(self.key_encoder)
        sizes = (self.num_classes, embedding_dim)
        self.prototypes = Prototypes(
            *sizes, prototype_momentum, name="prototypes"
        )
        self.queue = EmbeddingQueue(queue_size, embedding_dim, name="queue")
        self.contrastive_loss = losses.SupervisedContrastive(temperature)

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
        embeddings = outputs["embeddings"]
        labels = self.pseudo_class(outputs, batch)
        self.prototypes.update(keras.ops.stop_gradient(embeddings), labels)
        compared = self.compared(embeddings, self.keys(batch), labels)
        contrasts = self.contrasts(labels, *compared, batch.sample_weight)
        return {**parts, **contrasts}

    def contrasts(self, labels, entry_labels, similarities, own, weight):
        """Returns the contrastive loss parts, as `method_losses` does."""
        positives = losses.positive_mask(labels, entry_labels)
        mask = losses.contrast_mask(positives, *own)
        loss = self.contrastive_loss(mask, similarities, sample_weight=weight)
        return {"cont": (self.contrastive_weight, loss)}

    def keys(self, batch):
        """Moves the key encoder, then embeds the strong views with it."""
        m = self.key_momentum
        queries = self.backbone.weights + self.projection.weights
        for key, query in zip(self.key_encoder.weights, queries):
            # Batch statistics stay those of its own views.
            if query.trainable:
                query = keras.ops.stop_gradient(query)
                key.assign(m * key + (1.0 - m) * query)
        keys = self.key_encoder(batch.views["strong"], training=True)
        return keras.ops.stop_gradient(ops.unit_norm(keys))

    def pseudo_class(self, outputs, batch):
        """Most likely class under `(S + lambda (1 - S)) P`, `(B,)` integers."""
        lam = self.pseudo_label_table.lam_of(batch.index)
        z = ops.weighted_probabilities(
            keras.ops.softmax(outputs["logits"]), batch.candidates, lam
        )
        return keras.ops.cast(keras.ops.argmax(z, axis=-1), backend.INTEGER)

    def compared(self, embeddings, keys, labels):
        """Compares embeddings with the entries; the keys then join the queue.

        The M entries are the embeddings of the global batch, its keys, and the
        queue. Returns their labels `(M,)`, cosine similarities `(B, M)`, and
        whether an entry is the anchor itself or its own key, a pair `(B, M)`.
        """
        ops = keras.ops
        all_embeddings, all_keys, all_labels = backend.all_gather(
            embeddings, keys, labels
        )
        parts = (all_embeddings, all_keys, self.queue.embeddings)
        similarities = [ops.matmul(embeddings, ops.transpose(x)) for x in parts]
        entry_labels = ops.concatenate(
            [all_labels, all_labels, ops.convert_to_tensor(self.queue.labels)]
        )
        size = ops.shape(labels)[0]
        mine = ops.expand_dims(backend.first_row(size) + ops.arange(size), 1)
        place = ops.expand_dims(ops.arange(ops.shape(entry_labels)[0]), 0)
        is_own_key = place == mine + ops.shape(all_labels)[0]
        self.queue.enqueue(all_keys, all_labels)
        similarities = ops.concatenate(similarities, axis=1)
        return entry_labels, similarities, (place == mine, is_own_key)

    @keras.Model.trainable.setter
    def trainable(self, value):
        # The query encoder learns again; the key encoder never does.
        keras.Model.trainable.fset(self, value)
        if hasattr(self, "key_encoder"):
            self.key_encoder.trainable = True
            _freeze(self.key_encoder)


def _freeze(network):
    # `network.trainable = False` would also put its batch normalisation into
    # inference mode.
    for variable in network.trainable_variables:
        variable.trainable = False
