"""The only code that knows a framework; one module per Keras backend.

Both modules offer the same names:

- `Trainer`, a `train_step` around `PartialLabelModel.training_loss`;
- collectives over the replicas of a step: `all_gather`, `num_replicas`,
  `first_row`, `synchronise` (of batch statistics), and the checks
  `check_rows`, `check_shares` and `check_executions`;
- `gather_rows`, `scatter_rows`, `take_rows`, `normalise_batch` and
  `compiled`;
- devices: `make_strategy`, `device_memory`, `gpu_names`,
  `make_deterministic`, `set_random_seed`;
- processes: `process_index`, `process_count`, `is_chief`,
  `gather_processes`, `watching_workers`;
- `save_served_model`;
- `INTEGER`, the dtype of labels and indices in weights and in the step.
"""

import importlib

import keras

from alim_keras.errors import EnvironmentLacksError

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
    "take_rows",
    "set_random_seed",
    "synchronise",
    "watching_workers",
]

if keras.config.backend() not in BACKENDS:
    raise EnvironmentLacksError(
        f"alim_keras runs on Keras's backends {' and '.join(BACKENDS)}. Set "
        "KERAS_BACKEND to one of them before the first import of keras. "
        f"Received: keras.config.backend()={keras.config.backend()!r}"
    )
_module = importlib.import_module(f"{__name__}.{keras.config.backend()}")
for _name in __all__[1:]:
    globals()[_name] = getattr(_module, _name)
