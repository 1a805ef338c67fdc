"""GCE: generalised cross-entropy, averaged over the candidates."""

import keras

from alim_keras import losses
from alim_keras.methods.averaged import Averaged


@keras.saving.register_keras_serializable(package="alim_keras")
class GCE(Averaged):
    """Partial label learning with the generalised cross-entropy.

    The loss is `sum_c w_c (1 - P_c^g) / g` with `w = S / |S|`.

    Args:
        backbone: See `PartialLabelModel`; so are `num_classes`,
            `num_examples` and all not listed here. `targets`: see `Averaged`.
        exponent: g in (0, 1]. Defaults to `0.7`.

    Example: as `RC`'s; ALIM with `targets="pseudo_labels"` only.

    Reference:
    - [Zhang and Sabuncu, 2018](https://arxiv.org/abs/1805.07836)
    """

    def __init__(
        self,
        backbone,
        num_classes,
        num_examples,
        *,
        exponent=0.7,
        **kwargs,
    ):
        super().__init__(backbone, num_classes, num_examples, **kwargs)
        self.exponent = exponent
        self.label_loss = losses.AveragedGeneralised(exponent)

    def get_config(self):
        return {
            **super().get_config(),
            "exponent": self.exponent,
        }
