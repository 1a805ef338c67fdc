"""IRNet: PiCO that adds the missing label to sets that look wrong."""

import keras

from alim_keras import errors
from alim_keras import losses
from alim_keras.layers import AddedLabels
from alim_keras.methods.pico import PiCO
from alim_keras.ops import members


@keras.saving.register_keras_serializable(package="alim_keras")
class IRNet(PiCO):
    """PiCO with iterative refinement of the candidate sets.

    [Lian et al., 2022](https://arxiv.org/abs/2211.04774). With G and G' the
    `scores` of two weak views, an example is noisy if
    `max_{c not in S} G_c > max_{c in S} G_c + tau`, the same for G', and both
    maxima outside S are at the same label. After the share `correct_start` of
    the training this label joins S for good, as the last act of a step: its
    pseudo label becomes G at the label, and the row is scaled to a sum of 1.
    All but compiled metrics then works with the larger set. The authors start
    when the test accuracy has levelled off, which may select nothing here. The
    log `corrected` is the number of labels added in the epoch.

    Args:
        *args: See `PiCO`, and for all not listed here. Of a sparse table, which
            has no room for more labels, comes a `ConfigError`.
        tau: Defaults to `0.01`; docs/method.md has the published ones.
        correct_start: Share of the epochs before sets are corrected. Defaults
            to `0.5`, the project's own.
        label_loss: Loss against the pseudo labels: `"sce"`, which is
            `losses.symmetric_crossentropy` (CIFAR-10), or `"ce"` (CIFAR-100).
            Defaults to `"sce"`.
        prototype_temperature: Defaults to `1.0`, which tau was published for.
        mixup_weight: Defaults to `0.0`.

    Example: as `PiCO`'s, with `alim_keras.methods.IRNet`.
    """

    view_names = ("weak", "strong", "weak2")
    takes_folds = True

    def __init__(
        self,
        *args,
        tau=0.01,
        correct_start=0.5,
        label_loss="sce",
        prototype_temperature=1.0,
        mixup_weight=0.0,
        **kwargs,
    ):
        errors.check_choice("label_loss", label_loss, ("sce", "ce"))
        super().__init__(
            *args,
            prototype_temperature=prototype_temperature,
            mixup_weight=mixup_weight,
            **kwargs,
        )
        if not self.pseudo_label_table.is_dense:
            raise errors.ConfigError(
                "IRNet adds labels to candidate sets, which a sparse table has "
                "no room for; use table='dense' (--table=dense). Received: "
                f"table={type(self.pseudo_label_table).__name__}"
            )
        self.keep(tau=(tau, "weight"), correct_start=(correct_start, "share"))
        self.label_loss = label_loss
        self.added_labels = AddedLabels(
            self.num_examples, self.num_classes, name="added_labels"
        )
        self.corrected = keras.metrics.Sum(name="corrected")

    @property
    def training_logs(self):
        return super().training_logs | {"corrected"}

    def current_candidates(self, index, candidates):
        return self.added_labels.joined(index, candidates)

    def example_losses(self, logits, targets, candidates):
        if self.label_loss == "ce":
            return super().example_losses(logits, targets, candidates)
        return losses.symmetric_crossentropy(targets, keras.ops.softmax(logits))

    def method_losses(self, outputs, targets, batch):
        parts = super().method_losses(outputs, targets, batch)
        # As the authors': with batch statistics, and with the prototypes as
        # the first view has moved them.
        second = self.encode(batch.views["weak2"], training=True)
        second = self.out_of_fold(second, batch.index)
        scores, others = (
            keras.ops.stop_gradient(self.scores(view))
            for view in (outputs, second)
        )
        label, noisy = missing_label(scores, others, batch.candidates, self.tau)
        noisy = keras.ops.logical_and(
            noisy, self.progress >= self.correct_start
        )
        table = self.pseudo_label_table
        rows = table.rows(batch.index, batch.candidates)
        label = keras.ops.one_hot(label, self.num_classes)
        larger = keras.ops.where(label > 0.5, scores, rows)
        larger = larger / keras.ops.sum(larger, axis=-1, keepdims=True)
        row = keras.ops.expand_dims(noisy, 1)
        rows = keras.ops.where(row, larger, rows)
        table.overwrite(batch.index, rows, batch.candidates)
        self.added_labels.add(batch.index, keras.ops.where(row, label, 0.0))
        self.corrected.update_state(keras.ops.cast(noisy, "float32"))
        return parts


def missing_label(first, second, candidates, tau):
    """Finds the label that a wrong set seems to lack; see `IRNet`.

    Takes the scores of two views and the sets, all `(B, C)`, and returns a
    pair of tensors `(B,)`: the first view's label (integers), and whether both
    views agree that the set lacks it.

    >>> missing_label([[.6, .4]], [[.7, .3]], [[0., 1.]], 0.1)
    ([0], [True])
    """
    ops = keras.ops

    def lead(scores):
        outside = (1.0 - members(candidates)) * scores
        rival = ops.max(candidates * scores, axis=-1)
        ahead = ops.max(outside, axis=-1) > tau + rival
        return ops.argmax(outside, axis=-1), ahead

    candidates = ops.convert_to_tensor(candidates)
    label, ahead = lead(ops.convert_to_tensor(first))
    other, also = lead(ops.convert_to_tensor(second))
    noisy = ops.logical_and(ops.logical_and(ahead, also), label == other)
    return label, noisy
