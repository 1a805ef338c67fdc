"""The only code that knows a framework; one module per Keras backend.

Both modules offer the same names:

- `Trainer`, a gradient step around `PartialLabelModel.training_loss`;
- collectives over the replicas of a step: `all_gather`, `num_replicas`,
  `first_row`, and the checks `check_rows`, `check_shares` and
  `check_executions`;
- `gather_rows`, `scatter_rows`, `take_rows`, `normalise_batch` and
  `compiled`;
- devices: `make_strategy`, `device_memory`, `gpu_names`,
  `make_deterministic`, `set_random_seed`;
- processes: `process_index`, `process_count`, `is_chief`,
  `gather_processes`, `watching_workers`;
- `save_served_model`;
- `INTEGER`, the dtype of labels and indices in weights and in the step.
"""

import keras

from alim_keras.errors import EnvironmentLacksError

if keras.config.backend() == "tensorflow":
    from alim_keras.backend.tensorflow import INTEGER
    from alim_keras.backend.tensorflow import Trainer
    from alim_keras.backend.tensorflow import all_gather
    from alim_keras.backend.tensorflow import check_executions
    from alim_keras.backend.tensorflow import check_rows
    from alim_keras.backend.tensorflow import check_shares
    from alim_keras.backend.tensorflow import compiled
    from alim_keras.backend.tensorflow import device_memory
    from alim_keras.backend.tensorflow import first_row
    from alim_keras.backend.tensorflow import gather_processes
    from alim_keras.backend.tensorflow import gather_rows
    from alim_keras.backend.tensorflow import gpu_names
    from alim_keras.backend.tensorflow import is_chief
    from alim_keras.backend.tensorflow import make_deterministic
    from alim_keras.backend.tensorflow import make_strategy
    from alim_keras.backend.tensorflow import normalise_batch
    from alim_keras.backend.tensorflow import num_replicas
    from alim_keras.backend.tensorflow import process_count
    from alim_keras.backend.tensorflow import process_index
    from alim_keras.backend.tensorflow import save_served_model
    from alim_keras.backend.tensorflow import scatter_rows
    from alim_keras.backend.tensorflow import set_random_seed
    from alim_keras.backend.tensorflow import take_rows
    from alim_keras.backend.tensorflow import watching_workers
elif keras.config.backend() == "jax":
    from alim_keras.backend.jax import INTEGER
    from alim_keras.backend.jax import Trainer
    from alim_keras.backend.jax import all_gather
    from alim_keras.backend.jax import check_executions
    from alim_keras.backend.jax import check_rows
    from alim_keras.backend.jax import check_shares
    from alim_keras.backend.jax import compiled
    from alim_keras.backend.jax import device_memory
    from alim_keras.backend.jax import first_row
    from alim_keras.backend.jax import gather_processes
    from alim_keras.backend.jax import gather_rows
    from alim_keras.backend.jax import gpu_names
    from alim_keras.backend.jax import is_chief
    from alim_keras.backend.jax import make_deterministic
    from alim_keras.backend.jax import make_strategy
    from alim_keras.backend.jax import normalise_batch
    from alim_keras.backend.jax import num_replicas
    from alim_keras.backend.jax import process_count
    from alim_keras.backend.jax import process_index
    from alim_keras.backend.jax import save_served_model
    from alim_keras.backend.jax import scatter_rows
    from alim_keras.backend.jax import set_random_seed
    from alim_keras.backend.jax import take_rows
    from alim_keras.backend.jax import watching_workers
else:
    raise EnvironmentLacksError(
        "alim_keras runs on Keras's backends tensorflow and jax. Set "
        "KERAS_BACKEND to one of them before the first import of keras. "
        f"Received: keras.config.backend()={keras.config.backend()!r}"
    )

BACKENDS = ("tensorflow", "jax")

__all__ = [
    "BACKENDS",
    "INTEGER",
    "Trainer",
    "all_gather",
    "check_executions",
    "check_rows",
    "check_shares",
    "compiled",
    "device_memory",
    "first_row",
    "gather_processes",
    "gather_rows",
    "gpu_names",
    "is_chief",
    "make_deterministic",
    "make_strategy",
    "normalise_batch",
    "num_replicas",
    "process_count",
    "process_index",
    "save_served_model",
    "scatter_rows",
    "set_random_seed",
    "take_rows",
    "watching_workers",
]
