"""How frequent the classes are, as far as the model can tell."""

import keras

from alim_keras import backend


@keras.saving.register_keras_serializable(package="alim_keras")
class ClassPrior(keras.layers.Layer):
    """A moving average of the targets: the share of each class.

    True labels are not needed: the pseudo labels stand in for them.

    Args:
        num_classes: C.
        momentum: Of the average, per step. Defaults to `0.99`.

    Weights (none trainable):
        prior: `(C,)`, sums to 1; uniform at the start.

    Reference:
    - [Menon et al., 2021](https://arxiv.org/abs/2007.07314) (logit adjustment)
    """

    def __init__(self, num_classes, momentum=0.99, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.num_classes = num_classes
        self.momentum = momentum
        self.prior = self.add_weight(
            name="prior",
            shape=(num_classes,),
            initializer=keras.initializers.Constant(1.0 / num_classes),
            trainable=False,
        )
        self.built = True

    def update(self, targets):
        """Takes in a batch's targets `(B, C)`, of all replicas."""
        mean = keras.ops.mean(backend.all_gather(targets), axis=0)
        m = self.momentum
        self.prior.assign(m * self.prior + (1.0 - m) * mean)

    def log(self):
        """Returns the logarithm of the shares, `(C,)`."""
        prior = keras.ops.convert_to_tensor(self.prior)
        return keras.ops.log(keras.ops.maximum(prior, 1e-6))

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "momentum": self.momentum,
        }
