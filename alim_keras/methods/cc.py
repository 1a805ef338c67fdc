"""CC: the classifier-consistent method."""

import keras

from alim_keras import losses
from alim_keras.methods.base import PartialLabelModel


@keras.saving.register_keras_serializable(package="alim_keras")
class CC(PartialLabelModel):
    """Classifier-consistent partial label learning.

    The loss is `-log sum_{c in S} P_c`, from logits, so that it keeps its
    gradient where that sum underflows. It keeps no pseudo labels, so ALIM
    does not apply.

    Args:
        backbone: See `PartialLabelModel`; so are all others.

    Example: as `RC`'s, without ALIM.

    Reference:
    - [Feng et al., 2020](https://arxiv.org/abs/2007.08929)
    """

    keeps_pseudo_labels = False

    def __init__(self, backbone, num_classes, num_examples, **kwargs):
        super().__init__(backbone, num_classes, num_examples, **kwargs)
        self.candidate_loss = losses.CandidateCrossentropy(from_logits=True)

    def classification_loss(
        self, logits, targets, candidates, sample_weight=None
    ):
        return self.candidate_loss(
            candidates, logits, sample_weight=sample_weight
        )
