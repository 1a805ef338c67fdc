"""A method of one's own: CAVL, in a class of two methods.

    python -m alim_keras.train --method=examples/own_method.py:CAVL

docs/own_method.md explains it.
"""

import keras

import alim_keras


@keras.saving.register_keras_serializable(package="my_methods")
class CAVL(alim_keras.PartialLabelModel):
    """The true label is the candidate of the largest activation value.

    With z the logits, the label is `argmax over S of |z - 1| z`, and the loss
    its cross-entropy, or with `smoothing` that of a softened label.

    Reference: Zhang et al., Exploiting class activation value for
    partial-label learning, ICLR 2022.
    """

    default_norm = "onehot"  # The label is a single class,
    default_momentum = (0.0, 0.0)  # not averaged over epochs,
    refresh_when = "before_loss"  # and this step's loss already uses it.

    def __init__(self, *args, smoothing=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.smoothing = smoothing  # Saved with the model, by its name.

    def scores(self, outputs):
        z = keras.ops.stop_gradient(outputs["logits"])
        return keras.ops.softmax(keras.ops.abs(z - 1.0) * z)

    def example_losses(self, logits, targets, candidates):
        soft = self.smoothing / self.num_classes
        targets = (1.0 - self.smoothing) * targets + soft
        return super().example_losses(logits, targets, candidates)
