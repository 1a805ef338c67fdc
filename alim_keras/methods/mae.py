"""MAE: absolute error, averaged over the candidates."""

import keras

from alim_keras import losses
from alim_keras.methods.averaged import Averaged


@keras.saving.register_keras_serializable(package="alim_keras")
class MAE(Averaged):
    """Partial label learning with the absolute error.

    The loss is `2 sum_c w_c (1 - P_c)` with `w = S / |S|`.

    Args:
        backbone: See `PartialLabelModel`; so are `num_classes`,
            `num_examples` and all not listed here. `targets`: see `Averaged`.

    Example: as `RC`'s; ALIM with `targets="pseudo_labels"` only.

    Reference:
    - [Feng et al., 2020](https://arxiv.org/abs/1912.12927)
    """

    def __init__(self, backbone, num_classes, num_examples, **kwargs):
        super().__init__(backbone, num_classes, num_examples, **kwargs)
        self.label_loss = losses.AveragedAbsolute()
