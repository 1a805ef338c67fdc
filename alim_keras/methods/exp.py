"""EXP: the exponential loss of multiple complementary labels."""

import keras

from alim_keras import losses
from alim_keras.methods.base import PartialLabelModel


@keras.saving.register_keras_serializable(package="alim_keras")
class EXP(PartialLabelModel):
    """Learning from the labels outside the set, with a bounded loss.

    The loss is `(C - 1) / (C - |S|) exp(-sum_{c in S} P_c)`; a full set
    weighs 0. It keeps no pseudo labels, so ALIM does not apply.

    Args:
        backbone: See `PartialLabelModel`; so are all others.

    Example: as `RC`'s, without ALIM.

    Reference:
    - [Feng et al., 2020](https://arxiv.org/abs/1912.12927)
    """

    keeps_pseudo_labels = False

    def __init__(self, backbone, num_classes, num_examples, **kwargs):
        super().__init__(backbone, num_classes, num_examples, **kwargs)
        self.candidate_loss = losses.CandidateExponential()

    def classification_loss(
        self, logits, targets, candidates, sample_weight=None
    ):
        return self.candidate_loss(
            candidates, keras.ops.softmax(logits), sample_weight=sample_weight
        )
