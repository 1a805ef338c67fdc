"""What LWC and LWS share: weights on both sides of the set."""

import keras

from alim_keras.errors import check_ranges
from alim_keras.layers import LeveragedWeights
from alim_keras.methods.base import PartialLabelModel

RECOMPUTE = ("after_step", "after_loss")


class Leveraged(PartialLabelModel):
    """Leveraged weighted loss, with weights that follow P.

    `v = S P / sum(S P)` on the candidates and `(1 - S) P / sum((1 - S) P)` on
    the others; `1 / C` on all of them before an example was seen. Such
    weights are no pseudo label (they sum to 2, half of it outside the set),
    so ALIM does not apply.

    Args:
        backbone: See `PartialLabelModel`; so are all keyword arguments that
            are not listed here.
        num_classes: C.
        num_examples: N.
        beta: What the labels outside the set weigh. Defaults to `1.0`; 2 is
            the other value that was published.
        recompute: `"after_step"`: the weights come from a second forward pass
            after the gradient step (the method's authors); `"after_loss"`:
            from the step's own (ALIM's authors). Defaults to `"after_step"`.
    """

    keeps_pseudo_labels = False

    def __init__(
        self,
        backbone,
        num_classes,
        num_examples,
        *,
        beta=1.0,
        recompute="after_step",
        **kwargs,
    ):
        if recompute not in RECOMPUTE:
            raise ValueError(
                f"Argument `recompute` must be one of {RECOMPUTE}. "
                f"Received: recompute={recompute!r}"
            )
        check_ranges(beta=(beta, "weight"))
        super().__init__(backbone, num_classes, num_examples, **kwargs)
        self.beta = beta
        self.recompute = recompute
        self.leveraged_weights = LeveragedWeights(
            num_examples, num_classes, name="leveraged_weights"
        )
        self.leveraged_loss = self.make_loss(beta)

    @classmethod
    def state_bytes(cls, num_examples, num_classes):
        return {"label weights": 4 * num_examples * num_classes}

    @property
    def refresh_when(self):
        """When the weights of a batch move."""
        return self.recompute

    def current_targets(self, outputs, batch):
        return self.leveraged_weights.rows(batch.index)

    def refresh(self, outputs, batch):
        return self.leveraged_weights.refresh(
            batch.index,
            keras.ops.stop_gradient(self.scores(outputs)),
            batch.candidates,
        )

    def classification_loss(
        self, logits, targets, candidates, sample_weight=None
    ):
        return self.leveraged_loss(
            (targets, candidates), logits, sample_weight=sample_weight
        )

    def get_config(self):
        return {
            **super().get_config(),
            "beta": self.beta,
            "recompute": self.recompute,
        }
