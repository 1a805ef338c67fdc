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
  `gather_processes`;
- `save_served_model`;
- `INTEGER`, the dtype of labels and indices in weights and in the step.
"""

import keras

from alim_keras.errors import EnvironmentLacksError

if keras.config.backend() == "tensorflow":
    from alim_keras.backend import tensorflow as framework

    workers = framework
elif keras.config.backend() == "jax":
    from alim_keras.backend import jax as framework
    from alim_keras.backend import jax_workers as workers
else:
    raise EnvironmentLacksError(
        "alim_keras runs on Keras's backends tensorflow and jax. Set "
        "KERAS_BACKEND to one of them before the first import of keras. "
        f"Received: keras.config.backend()={keras.config.backend()!r}"
    )

INTEGER = framework.INTEGER
Trainer = framework.Trainer
all_gather = framework.all_gather
check_executions = framework.check_executions
check_rows = framework.check_rows
check_shares = framework.check_shares
compiled = framework.compiled
device_memory = framework.device_memory
first_row = framework.first_row
gather_processes = workers.gather_processes
gather_rows = framework.gather_rows
gpu_names = framework.gpu_names
is_chief = workers.is_chief
make_deterministic = framework.make_deterministic
make_strategy = framework.make_strategy
normalise_batch = framework.normalise_batch
num_replicas = framework.num_replicas
process_count = workers.process_count
process_index = workers.process_index
save_served_model = framework.save_served_model
scatter_rows = framework.scatter_rows
set_random_seed = framework.set_random_seed
take_rows = framework.take_rows
