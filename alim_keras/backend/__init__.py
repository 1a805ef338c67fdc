"""The only code that knows a framework; one module per Keras backend.

A backend module offers `Trainer` (a `train_step` around
`PartialLabelModel.training_loss`), collectives (`all_gather`,
`num_replicas`, `first_row`), `scatter_rows`, `compiled` and
`save_served_model`.
"""

import keras

from alim_keras.errors import EnvironmentLacksError

if keras.config.backend() == "tensorflow":
    from alim_keras.backend.tensorflow import Trainer
    from alim_keras.backend.tensorflow import all_gather
    from alim_keras.backend.tensorflow import check_rows
    from alim_keras.backend.tensorflow import check_shares
    from alim_keras.backend.tensorflow import compiled
    from alim_keras.backend.tensorflow import first_row
    from alim_keras.backend.tensorflow import gpu_names
    from alim_keras.backend.tensorflow import make_deterministic
    from alim_keras.backend.tensorflow import make_strategy
    from alim_keras.backend.tensorflow import num_replicas
    from alim_keras.backend.tensorflow import save_served_model
    from alim_keras.backend.tensorflow import scatter_rows
else:
    raise EnvironmentLacksError(
        "alim_keras runs on Keras's TensorFlow backend. Set "
        "KERAS_BACKEND=tensorflow before the first import of keras. "
        f"Received: keras.config.backend()={keras.config.backend()!r}"
    )

__all__ = [
    "Trainer",
    "all_gather",
    "check_rows",
    "check_shares",
    "compiled",
    "gpu_names",
    "make_deterministic",
    "make_strategy",
    "num_replicas",
    "first_row",
    "save_served_model",
    "scatter_rows",
]
