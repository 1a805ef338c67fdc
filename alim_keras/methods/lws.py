"""LWS: the leveraged weighted loss with the sigmoid loss."""

import keras

from alim_keras import losses
from alim_keras.methods.leveraged import Leveraged


@keras.saving.register_keras_serializable(package="alim_keras")
class LWS(Leveraged):
    """Leveraged weighted loss with the sigmoid.

    The loss is `sum_S v sigmoid(-z) + beta sum_{not S} v sigmoid(z)`,
    with z the logits.

    Args:
        backbone: See `Leveraged` for all arguments.

    Example: as `RC`'s, without ALIM.

    Reference:
    - [Wen et al., 2021](https://arxiv.org/abs/2106.05731)
    """

    make_loss = losses.LeveragedSigmoid
