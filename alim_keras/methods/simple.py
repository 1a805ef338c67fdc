"""Methods without networks of their own: a loss against sets or weights.

A class without arguments of its own takes those of its base class.

Example of all of them (ALIM only where the method keeps pseudo labels):

```python
model = alim_keras.methods.RC(
    alim_keras.networks.small_cnn((28, 28, 1)), num_classes=10,
    num_examples=len(images))
model.compile(optimizer=keras.optimizers.SGD(0.01, momentum=0.9))
data = alim_keras.data.train_dataset(images, candidates, batch_size=128)
model.fit(data, epochs=20, callbacks=[
    alim_keras.callbacks.ALIM(noise_rate=0.3, warmup_epochs=5)])
```
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

    With `callbacks.ALIM`, `w = (S + lambda (1 - S)) P`, normalised: Eq. 3 with
    P the classifier's, as no public code shows how the paper combined the two.
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
    label_loss = None

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
