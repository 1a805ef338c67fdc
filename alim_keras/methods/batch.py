"""What one replica's training step works on."""

import dataclasses
from typing import Any

import keras

from alim_keras import backend
from alim_keras.methods import checks


@dataclasses.dataclass
class Batch:
    """What one replica's step works on.

    Attributes:
        weak: Weak views, normalised, `(B, H, W, channels)`.
        strong: Strong views, likewise.
        index: Integer `(B,)`, rows of the pseudo-label table.
        candidates: Multi-hot float32 `(B, C)`.
        sample_weight: `(B,)` or None.
    """

    weak: Any
    strong: Any
    index: Any
    candidates: Any
    sample_weight: Any

    @classmethod
    def of(cls, model, x, y, sample_weight):
        """Checks a training batch and makes its views, unless it has them."""
        checks.check_batch(x, y, model.num_classes)
        backend.check_rows(x["index"], model.num_examples)
        x = backend.check_shares(x, even=bool(model.mixup_weight))
        if "weak" in x:
            weak, strong = x["weak"], x["strong"]
        elif model.views is not None:
            draw = (x["image"], model.epoch, x["index"])
            weak, strong = model.views.weak(*draw), model.views.strong(*draw)
        else:
            weak = strong = x["image"]
        return cls(
            model.prepare(weak),
            model.prepare(strong),
            x["index"],
            keras.ops.cast(y, "float32"),
            sample_weight,
        )
