"""Methods without networks of their own: a loss against sets or weights.

A class without arguments of its own takes those of its base class. Example:
as `PiCO`'s, with ALIM only where the method keeps pseudo labels.
"""

import keras

from alim_keras import losses
from alim_keras.layers import LeveragedWeights
from alim_keras.methods.base import PartialLabelModel

# Against pseudo labels.


@keras.saving.register_keras_serializable(package="alim_keras")
class RC(PartialLabelModel):
    """Risk-consistent: [Feng et al., 2020](https://arxiv.org/abs/2007.08929).

    The loss is `-sum_c w_c log P_c`. The weights begin as `S / |S|`; after
    each gradient step a second forward pass of the batch sets them to
    `w = S P / sum(S P)`, as in its authors' code. There is no moving average.

    With `callbacks.ALIM`, w is Eq. 3's by Eq. 5, with P the classifier's: no
    public code shows how the paper combined the two.
    """

    default_norm = "scale"
    default_momentum = (0.0, 0.0)
    refresh_when = "after_step"


@keras.saving.register_keras_serializable(package="alim_keras")
class PRODEN(RC):
    """Progressive: [Lv et al., 2020](https://arxiv.org/abs/2002.08053).

    `RC` without the second pass: a step, once its loss is computed, sets the
    weights for the next time from its own forward pass. That is the "RC" of
    ALIM's tables too, as its authors published it.
    """

    refresh_when = "after_loss"


@keras.saving.register_keras_serializable(package="alim_keras")
class CRDPLL(PRODEN):
    """Consistency regularisation with pseudo labels of three views.

    [Wu et al., 2022](https://proceedings.mlr.press/v162/wu22l.html). With P_0,
    P_1, P_2 the predictions on the weak and two strong views the loss is

        r sum_k KL(w || P_k) - mean_i sum_{c not in S} log(1 - P_0c),

    r rising linearly from 0 to 1 in the first half of the training, as in the
    published 200 epochs. Afterwards `w = S (P_0 P_1 P_2)^(1/3)`,
    normalised, from the same forward passes.

    With `callbacks.ALIM`, S becomes `S + lambda (1 - S)` in w. No public code
    says what the paper did with the second term, which pushes the true label
    of a wrong set down; here it stays as it is.

    Example: as `RC`'s, with `views=alim_keras.augment.AutoAugmentViews()`.
    """

    loss_names = ("consistency", "outside_set")
    view_names = ("weak", "strong", "strong2")
    takes_folds = True

    def forward(self, batch):
        # One pass for each view, as the authors': batch statistics are those
        # of views of one kind.
        views = []
        for name in self.view_names:
            view = self.encode(batch.views[name], training=True)
            views.append(self.out_of_fold(view, batch.index))
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


# Against the set, or weights of its labels: ALIM does not apply.


@keras.saving.register_keras_serializable(package="alim_keras")
class CC(PartialLabelModel):
    """Classifier-consistent learning: `losses.CandidateCrossentropy`.

    From logits, so that it keeps its gradient where the set's P underflows.
    """

    keeps_pseudo_labels = False

    def example_losses(self, logits, targets, candidates):
        loss = losses.CandidateCrossentropy(from_logits=True)
        return loss.call(candidates, logits)


@keras.saving.register_keras_serializable(package="alim_keras")
class EXP(PartialLabelModel):
    """Learning with a bounded loss: `losses.candidate_exponential`."""

    keeps_pseudo_labels = False

    def example_losses(self, logits, targets, candidates):
        probabilities = keras.ops.softmax(logits)
        return losses.candidate_exponential(candidates, probabilities)


class Averaged(PartialLabelModel):
    """A method whose loss is against the weights `w = S / |S|`, always."""

    keeps_pseudo_labels = False

    def example_losses(self, logits, targets, candidates):
        return self.label_loss(targets, keras.ops.softmax(logits))


@keras.saving.register_keras_serializable(package="alim_keras")
class MSE(Averaged):
    """`losses.squared_error` against `S / |S|`."""

    label_loss = staticmethod(losses.squared_error)


@keras.saving.register_keras_serializable(package="alim_keras")
class MAE(Averaged):
    """`losses.absolute_error` against `S / |S|`."""

    label_loss = staticmethod(losses.absolute_error)


@keras.saving.register_keras_serializable(package="alim_keras")
class GCE(Averaged):
    """`losses.generalised_crossentropy` against `S / |S|`, g = 0.7."""

    label_loss = staticmethod(losses.generalised_crossentropy)


@keras.saving.register_keras_serializable(package="alim_keras")
class SCE(Averaged):
    """`losses.symmetric_crossentropy` against `S / |S|`: 6 CE + reverse CE."""

    label_loss = staticmethod(losses.symmetric_crossentropy)


class Leveraged(PartialLabelModel):
    """`losses.leveraged`, with weights that follow P.

    `v = S P / sum(S P)` on the candidates and `(1 - S) P / sum((1 - S) P)` on
    the others, by a second forward pass after the gradient step; `1 / C` on
    all of them before an example was seen. Such weights are no pseudo label:
    they sum to 2, half of it outside the set.

    Args:
        *args: See `PartialLabelModel`.
        beta: Weight of the labels outside the set. Defaults to `1.0`; 2 is
            the other value that was published.
    """

    keeps_pseudo_labels = False
    refresh_when = "after_step"

    def __init__(self, *args, beta=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.keep(beta=(beta, "weight"))
        self.leveraged_weights = LeveragedWeights(
            self.num_examples, self.num_classes, name="leveraged_weights"
        )

    def current_targets(self, outputs, batch):
        return self.leveraged_weights.rows(batch.index)

    def refresh(self, outputs, batch):
        scores = keras.ops.stop_gradient(self.scores(outputs))
        return self.leveraged_weights.refresh(
            batch.index, scores, batch.candidates
        )

    def example_losses(self, logits, targets, candidates):
        up, down = self.penalties(logits)
        return losses.leveraged(targets, candidates, up, down, self.beta)


@keras.saving.register_keras_serializable(package="alim_keras")
class LWC(Leveraged):
    """`Leveraged` with cross-entropy; with beta 0 it is RC's loss.

    It is `sum_S -v log P + beta sum_{not S} -v log(1 - P)`.
    """

    def penalties(self, logits):
        p = keras.ops.softmax(logits)
        return -keras.ops.log(p + 1e-8), -keras.ops.log(1.0 - p + 1e-8)


@keras.saving.register_keras_serializable(package="alim_keras")
class LWS(Leveraged):
    """`Leveraged` with the sigmoid of the logits z.

    It is `sum_S v sigmoid(-z) + beta sum_{not S} v sigmoid(z)`.
    """

    def penalties(self, logits):
        return keras.ops.sigmoid(-logits), keras.ops.sigmoid(logits)
