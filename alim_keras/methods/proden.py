"""PRODEN: progressive identification of the true label."""

import keras

from alim_keras.methods.base import PartialLabelModel


@keras.saving.register_keras_serializable(package="alim_keras")
class PRODEN(PartialLabelModel):
    """Progressive identification.

    The loss is `-sum_c w_c log P_c`. The weights begin as `S / |S|`; each
    step, once its loss is computed, sets those of its batch to
    `w = S P / sum(S P)` for the next time, P from the same forward pass. That
    is the "RC" of ALIM's tables too, as its authors published it.

    With `callbacks.ALIM`, `w = (S + lambda (1 - S)) P`, normalised.

    Args:
        backbone: See `PartialLabelModel`; so are all others.

    Example: as `RC`'s.

    Reference:
    - [Lv et al., 2020](https://arxiv.org/abs/2002.08053)
    """

    default_norm = "scale"
    default_momentum = (0.0, 0.0)
    refresh_when = "after_loss"
