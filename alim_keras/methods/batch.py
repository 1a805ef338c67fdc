"""What one replica's training step works on."""

import dataclasses
from typing import Any

import keras

from alim_keras import backend
from alim_keras.augment import make_views
from alim_keras.methods import checks


@dataclasses.dataclass
class Batch:
    """What one replica's step works on.

    Attributes:
        views: Dict from the names in the method's `view_names` to normalised
            images `(B, H, W, channels)`.
        index: Integer `(B,)`, rows of the pseudo-label table.
        candidates: Multi-hot float32 `(B, C)`.
        sample_weight: `(B,)` or None.
    """

    views: Any
    index: Any
    candidates: Any
    sample_weight: Any

    @property
    def weak(self):
        """The weak views."""
        return self.views["weak"]

    @property
    def strong(self):
        """The strong views, of a method that asks for them."""
        return self.views["strong"]

    @classmethod
    def of(cls, model, x, y, sample_weight):
        """Checks a training batch and makes its views, unless it has them."""
        names = model.view_names
        checks.check_batch(x, y, model.num_classes, names)
        backend.check_rows(x["index"], model.num_examples)
        x = backend.check_shares(x, even=bool(model.mixup_weight))
        if names[0] in x:
            views = {name: x[name] for name in names}
        elif model.views is not None:
            draw = (x["image"], model.epoch, x["index"])
            views = make_views(model.views, names, draw)
        else:
            views = {name: x["image"] for name in names}
        return cls(
            {name: model.prepare(view) for name, view in views.items()},
            x["index"],
            model.current_candidates(x["index"], keras.ops.cast(y, "float32")),
            sample_weight,
        )
