"""How a method keeps its pseudo labels, and when they move."""

import keras

from alim_keras import ops
from alim_keras.layers import make_table
from alim_keras.methods.batch import Batch


class Labelling:
    """What `PartialLabelModel` does with its table.

    The class attributes are a method's to override; see there.
    """

    keeps_pseudo_labels = True
    default_norm = "onehot"
    default_momentum = (0.95, 0.8)
    refresh_when = "before_loss"

    def _add_table(self, table):
        table = make_table(table, self.num_examples, self.num_classes)
        table.momentum.assign(self.pseudo_label_momentum[0])
        table.use_onehot.assign(float(self.default_norm == "onehot"))
        self.pseudo_label_table = table

    @property
    def pseudo_labels(self):
        """The table `(N, C)`: what the model believes of every example.

        It has `shape` and `numpy()`; a sparse table is made dense by
        `numpy()` only.
        """
        if not self.keeps_pseudo_labels:
            raise AttributeError(
                f"{type(self).__name__} keeps no pseudo labels; it learns from "
                "the candidate sets as they are. Use predict(images)."
            )
        return self.pseudo_label_table

    def scores(self, outputs):
        """Returns the P of Eq. 3 and Eq. 6, `(B, C)`, from `encode`'s dict."""
        return keras.ops.softmax(outputs["logits"])

    def current_targets(self, outputs, batch):
        """Returns the targets of this step's losses, `(B, C)`."""
        if not self.keeps_pseudo_labels:
            return ops.uniform_over_candidates(batch.candidates)
        if self.refresh_when == "before_loss":
            return self.refresh(outputs, batch)
        return self.pseudo_label_table.rows(batch.index, batch.candidates)

    def refresh(self, outputs, batch):
        """Moves the batch's pseudo labels by Eq. 3; returns them, `(B, C)`."""
        return self.pseudo_label_table.refresh(
            batch.index,
            keras.ops.stop_gradient(self.scores(outputs)),
            batch.candidates,
            active=self.labels_move(),
        )

    def labels_move(self):
        """Whether the pseudo labels change in this epoch, a boolean tensor."""
        return self.epoch + 1 >= self.pseudo_label_start

    def current_candidates(self, index, candidates):
        """Returns the sets that training works with, `(B, C)`.

        They are the data's, unless a method corrects sets.

        Args:
            index: Integer tensor `(B,)`.
            candidates: Multi-hot float32 tensor `(B, C)`: the data's.
        """
        return candidates

    def after_step(self, batch):
        """Called with `training_loss`'s dict once the weights have moved."""
        if self.refresh_when == "after_step":
            batch = Batch(**batch)
            self.refresh(self.forward(batch), batch)
