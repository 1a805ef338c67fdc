"""LWC: the leveraged weighted loss with cross-entropy."""

import keras

from alim_keras import losses
from alim_keras.methods.leveraged import Leveraged


@keras.saving.register_keras_serializable(package="alim_keras")
class LWC(Leveraged):
    """Leveraged weighted loss with cross-entropy.

    The loss is `sum_S -v log P + beta sum_{not S} -v log(1 - P)`.
    With beta 0 it is RC's.

    Args:
        backbone: See `Leveraged` for all arguments.

    Example: as `RC`'s, without ALIM.

    Reference:
    - [Wen et al., 2021](https://arxiv.org/abs/2106.05731)
    """

    make_loss = losses.LeveragedCrossentropy
