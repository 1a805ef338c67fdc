"""SCE: symmetric cross-entropy, averaged over the candidates."""

import keras

from alim_keras import losses
from alim_keras.errors import check_ranges
from alim_keras.methods.averaged import Averaged


@keras.saving.register_keras_serializable(package="alim_keras")
class SCE(Averaged):
    """Partial label learning with the symmetric cross-entropy.

    The loss is `alpha CE(w, P) + beta CE(P, w)` with `w = S / |S|`.

    Args:
        backbone: See `PartialLabelModel`; so are `num_classes`,
            `num_examples` and all not listed here. `targets`: see `Averaged`.
        alpha: Weight of the cross-entropy. Defaults to `6.0`.
        beta: Weight of the reverse one. Defaults to `1.0`.

    Example: as `RC`'s; ALIM with `targets="pseudo_labels"` only.

    Reference:
    - [Wang et al., 2019](https://arxiv.org/abs/1908.06112)
    """

    def __init__(
        self,
        backbone,
        num_classes,
        num_examples,
        *,
        alpha=6.0,
        beta=1.0,
        **kwargs,
    ):
        check_ranges(alpha=(alpha, "weight"), beta=(beta, "weight"))
        super().__init__(backbone, num_classes, num_examples, **kwargs)
        self.alpha = alpha
        self.beta = beta
        self.label_loss = losses.SymmetricCrossentropy(alpha, beta)

    def get_config(self):
        return {
            **super().get_config(),
            "alpha": self.alpha,
            "beta": self.beta,
        }
