"""PiCO+: PiCO that trusts a set only where its prototype is near."""

import keras

from alim_keras import backend
from alim_keras import losses
from alim_keras import ops
from alim_keras.errors import ConfigError
from alim_keras.layers import Reliability
from alim_keras.methods.pico import PiCO


@keras.saving.register_keras_serializable(package="alim_keras")
class PiCOPlus(PiCO):
    """PiCO for noisy sets: reliable examples, neighbours, guessed labels.

    [Wang et al., 2022](https://arxiv.org/abs/2201.08984), version 3. With P of
    the classifier, q an embedding, p_c the prototypes and G the `scores`:

    - Through epoch `start` all examples count as reliable, pseudo labels stay
      `S / |S|`, and the loss is `CE(w, P) + contrastive_weight * MoCo`.
    - As each later epoch begins, the share `pure_ratio` of the examples with
      the smallest distance `-q . p_c`, c = argmax(S P), is reliable; distances
      are those of the training steps before. Pseudo classes are argmax(S P)
      of reliable examples and argmax P of all others. Only the reliable ones
      move prototypes. All pseudo labels w move as PiCO's.
    - Targets t are w for reliable examples and `g = G^(1/T) / sum(G^(1/T))`,
      T = 0.07, a guess that ignores the set, for all others. The loss is

          mixup(t) + 2 mean_reliable CE(w, P) + 0.1 mean_others CE(g, P)
          + SupCon(M) + 0.1 SupCon(M_all);

      a mean over no examples is 0. M_all has entries of the same pseudo class
      as positives; M only where both are reliable. From epoch `knn_start + 1`
      on the positives of an unreliable anchor in M are its `num_neighbours`
      nearest entries, itself included. The own key is always one. Anchors of M
      weigh `contrastive_weight` if reliable and 0.1 if not; before the
      neighbours come, 1.0 each, in the authors' code and here.

    With `callbacks.ALIM`, `S + lambda (1 - S)` stands for S in w and in the
    pseudo class of reliable examples, but not in the distance, which asks
    whether the set itself is right.

    Logs: `cls_loss` and `guess_loss`, the two means; `cont_loss`, SupCon(M)
    or MoCo with its weights; `relaxed_loss`, SupCon(M_all); `mix_loss`.
    `outside` counts a guess as pseudo label.

    Args:
        *args: See `PiCO`, and for all not listed here.
        start: Epochs of warm-up. Defaults to `80`.
        knn_start: Epochs without neighbours, at least `start`. Defaults to
            `100`.
        pure_ratio: Share of reliable examples. Defaults to `0.6`.
        num_neighbours: k, at most `queue_size`. Defaults to `16`.
        prototype_temperature: Defaults to `1.0`.

    Example: as `PiCO`'s, with `alim_keras.methods.PiCOPlus`.
    """

    # The authors' T of a guess, and weights of loss parts.
    guess_temperature, cls_weight, unreliable_weight = 0.07, 2.0, 0.1
    loss_names = ("cls", "cont", "relaxed", "guess")
    takes_folds = True

    def __init__(
        self,
        *args,
        start=80,
        knn_start=100,
        pure_ratio=0.6,
        num_neighbours=16,
        prototype_temperature=1.0,
        **kwargs,
    ):
        super().__init__(
            *args, prototype_temperature=prototype_temperature, **kwargs
        )
        self.keep(
            start=(start, "whole"),
            knn_start=(knn_start, "whole"),
            pure_ratio=(pure_ratio, "share"),
            num_neighbours=(num_neighbours, "count"),
        )
        if knn_start < start:
            raise ConfigError(
                "Argument `knn_start` must not be below `start`: before it, no "
                "example is unreliable. Received: "
                f"start={start}, knn_start={knn_start}"
            )
        if num_neighbours > self.queue_size:
            raise ConfigError(
                "Argument `num_neighbours` must be at most `queue_size`. "
                f"Received: num_neighbours={num_neighbours}, "
                f"queue_size={self.queue_size}"
            )
        # Pseudo labels stay S / |S| through the warm-up.
        self.pseudo_label_start = max(self.pseudo_label_start, start + 1)
        self.reliability = Reliability(self.num_examples, name="reliability")

    def begin_epoch(self, epoch):
        self.reliability.select(self.pure_ratio if epoch >= self.start else 1.0)

    def _after(self, epochs):
        return keras.ops.convert_to_tensor(self.epoch) >= epochs

    def current_targets(self, outputs, batch):
        rows = super().current_targets(outputs, batch)
        guess = ops.scale(self.scores(outputs), self.guess_temperature)
        reliable = self.reliability.of(batch.index)
        return keras.ops.where(keras.ops.expand_dims(reliable, 1), rows, guess)

    def mixup_loss(self, targets, batch):
        loss = super().mixup_loss(targets, batch)
        return keras.ops.where(self._after(self.start), loss, 0.0)

    def pseudo_class(self, outputs, batch):
        """Returns the pseudo class; C is added where it is not reliable.

        So one number holds both in the queue, and no prototype takes it in.
        """
        free = keras.ops.argmax(outputs["logits"], axis=-1)
        return keras.ops.where(
            self.reliability.of(batch.index),
            super().pseudo_class(outputs, batch),
            keras.ops.cast(free, backend.INTEGER) + self.num_classes,
        )

    def method_losses(self, outputs, targets, batch):
        # The distance to the prototype of the likeliest candidate.
        inside = ops.weighted_probabilities(
            keras.ops.softmax(outputs["logits"]), batch.candidates, 0.0
        )
        similarities = keras.ops.stop_gradient(outputs["similarities"])
        nearest = keras.ops.sum(ops.onehot(inside) * similarities, axis=-1)
        self.reliability.record(batch.index, -nearest)
        parts = super().method_losses(outputs, targets, batch)
        cls, guess = self._means(outputs, targets, batch)
        started = self._after(self.start)
        # In the place of the mean over all examples.
        parts["cls"] = keras.ops.where(started, self.cls_weight, 1.0), cls
        parts["guess"] = self.unreliable_weight, guess
        return parts

    def _means(self, outputs, targets, batch):
        # Losses over the reliable examples, and over all others.
        reliable = self.reliability.of(batch.index)
        for chosen in (reliable, keras.ops.logical_not(reliable)):
            mine = keras.ops.cast(chosen, "float32")
            all_of_them = backend.all_gather(mine)
            # A loss divides by the size of the global batch, not by this.
            count = keras.ops.maximum(keras.ops.sum(all_of_them), 1.0)
            size = keras.ops.sum(keras.ops.ones_like(all_of_them))
            weight = mine * size / count
            if batch.sample_weight is not None:
                weight = weight * batch.sample_weight
            part = batch._replace(sample_weight=weight)
            rows = self.loss_rows(outputs, targets, part)
            yield self.classification_loss(*rows)

    def contrasts(self, labels, entry_labels, similarities, own, weight):
        started = self._after(self.start)
        neighbours = self._after(self.knn_start)
        reliable = labels < self.num_classes
        nearest = losses.neighbour_mask(similarities, self.num_neighbours)
        nearest = keras.ops.where(neighbours, nearest, 0.0)
        # Unreliable entries have no class, so they match nothing.
        strict = losses.positive_mask(labels, entry_labels)
        row = keras.ops.expand_dims(reliable, 1)
        strict = keras.ops.where(row, strict, nearest)
        strict = losses.contrast_mask(strict, *own)
        warm = losses.instance_mask(own[1], self.queue_size)
        mine, theirs = self._class(labels), self._class(entry_labels)
        relaxed = losses.positive_mask(mine, theirs)
        relaxed = losses.contrast_mask(relaxed, *own)

        near, far = self.contrastive_weight, self.unreliable_weight
        each = keras.ops.where(reliable, near, far)
        each = keras.ops.where(neighbours, each, 1.0)
        each = keras.ops.where(started, each, near)
        if weight is not None:
            each = each * weight
        mask = keras.ops.where(started, strict, warm)
        cont = self.contrastive_loss(mask, similarities, sample_weight=each)
        loss = self.contrastive_loss(
            relaxed, similarities, sample_weight=weight
        )
        relaxed_weight = keras.ops.where(started, far, 0.0)
        return {"cont": (1.0, cont), "relaxed": (relaxed_weight, loss)}

    def _class(self, labels):
        free = labels - self.num_classes
        return keras.ops.where(labels < self.num_classes, labels, free)
