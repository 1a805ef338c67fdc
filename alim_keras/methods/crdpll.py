"""CRDPLL: consistency of three views, and the labels outside the set."""

import keras

from alim_keras import losses
from alim_keras.methods.base import PartialLabelModel


@keras.saving.register_keras_serializable(package="alim_keras")
class CRDPLL(PartialLabelModel):
    """Consistency regularisation with pseudo labels of three views.

    With P_0, P_1, P_2 the predictions on the weak and two strong views the
    loss is

        r sum_k KL(w || P_k) - mean_i sum_{c not in S} log(1 - P_0c),

    r rising linearly from 0 to 1 in the first half of the training, as in the
    published 200 epochs. Afterwards `w = S (P_0 P_1 P_2)^(1/3)`,
    normalised, from the same forward passes.

    With `callbacks.ALIM`, S becomes `S + lambda (1 - S)` in w. No public code
    says what the paper did with the second term, which pushes the true label
    of a wrong set down; here it stays as it is.

    Example: as `RC`'s, with `views=alim_keras.augment.AutoAugmentViews()`,
    the method's own.

    Reference:
    - [Wu et al., 2022](https://proceedings.mlr.press/v162/wu22l.html)
    """

    loss_names = ("consistency", "outside_set")
    view_names = ("weak", "strong", "strong2")
    takes_folds = True
    default_norm = "scale"
    default_momentum = (0.0, 0.0)
    refresh_when = "after_loss"

    def forward(self, batch):
        # One pass for each view, as the authors': batch statistics are those
        # of views of one kind.
        views = [
            self.out_of_fold(
                self.encode(batch.views[name], training=True), batch.index
            )
            for name in self.view_names
        ]
        return {**views[0], "views": views}

    def scores(self, outputs):
        """The geometric mean of the views' predictions, normalised."""
        views = outputs.get("views", [outputs])
        logs = [keras.ops.log_softmax(view["logits"]) for view in views]
        return keras.ops.softmax(sum(logs) / len(logs))

    def method_losses(self, outputs, targets, batch):
        # KL(w || P) = CE(w, P) - H(w), and H(w) has no gradient here.
        weight = batch.sample_weight
        logs = keras.ops.log(keras.ops.maximum(targets, 1e-30))
        entropy = keras.losses.categorical_crossentropy(
            targets, logs, from_logits=True
        )
        entropy = losses.over_batch(entropy, weight)
        consistency = 0.0
        for view in outputs["views"]:
            rows = self.loss_rows(view, targets, batch)
            consistency += self.classification_loss(*rows) - entropy
        logits, _, sets, weight = self.loss_rows(outputs, targets, batch)
        outside = losses.non_candidate_log_loss(sets, keras.ops.softmax(logits))
        outside = losses.over_batch(outside, weight)
        progress = keras.ops.convert_to_tensor(self.progress)
        risen = keras.ops.minimum(2.0 * progress, 1.0)
        return {
            "consistency": (risen, consistency),
            "outside_set": (1.0, outside),
        }
