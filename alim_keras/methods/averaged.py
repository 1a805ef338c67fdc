"""What GCE, MSE, MAE and SCE share: a loss against a weight per label."""

import keras

from alim_keras.methods.base import PartialLabelModel

TARGETS = ("candidates", "pseudo_labels")


class Averaged(PartialLabelModel):
    """A method that averages a robust loss over the labels.

    Args:
        backbone: See `PartialLabelModel`; so are all keyword arguments that
            are not listed here.
        num_classes: C.
        num_examples: N.
        targets: The weights w of the labels. `"candidates"`: `S / |S|`, the
            average-based methods; ALIM does not apply. `"pseudo_labels"`:
            the table's, moved after the loss as `PRODEN`'s; ALIM applies.
            Defaults to `"candidates"`.
    """

    keeps_pseudo_labels = False
    default_norm = "scale"
    default_momentum = (0.0, 0.0)

    def __init__(
        self,
        backbone,
        num_classes,
        num_examples,
        *,
        targets="candidates",
        **kwargs,
    ):
        if targets not in TARGETS:
            raise ValueError(
                f"Argument `targets` must be one of {TARGETS}. "
                f"Received: targets={targets!r}"
            )
        # Keras has no attributes before its own `__init__`; these are plain.
        object.__setattr__(
            self, "keeps_pseudo_labels", targets == "pseudo_labels"
        )
        super().__init__(backbone, num_classes, num_examples, **kwargs)
        self.targets = targets

    @property
    def refresh_when(self):
        """As `PRODEN`'s, where there is anything to refresh."""
        return "after_loss" if self.keeps_pseudo_labels else "never"

    def classification_loss(
        self, logits, targets, candidates, sample_weight=None
    ):
        del candidates
        return self.label_loss(
            targets, keras.ops.softmax(logits), sample_weight=sample_weight
        )

    def get_config(self):
        return {**super().get_config(), "targets": self.targets}
