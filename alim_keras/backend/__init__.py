"""The only code that knows a framework; one module per Keras backend.

Both modules offer the same names, those below: `Trainer` puts a gradient step
around `PartialLabelModel.training_loss`; `INTEGER` is the dtype of labels and
indices in weights and in the step.
"""

import keras

from alim_keras.errors import EnvironmentLacksError

if keras.config.backend() == "tensorflow":
    from alim_keras.backend import tensorflow as framework
elif keras.config.backend() == "jax":
    from alim_keras.backend import jax as framework
else:
    raise EnvironmentLacksError(
        "alim_keras runs on Keras's backends tensorflow and jax. Set "
        "KERAS_BACKEND to one of them before the first import of keras. "
        f"Received: keras.config.backend()={keras.config.backend()!r}"
    )

INTEGER = framework.INTEGER
Trainer = framework.Trainer
all_gather = framework.all_gather
check_shares = framework.check_shares
compiled = framework.compiled
device_memory = framework.device_memory
first_row = framework.first_row
gather_processes = framework.gather_processes
gather_rows = framework.gather_rows
gpu_names = framework.gpu_names
make_strategy = framework.make_strategy
normalise_batch = framework.normalise_batch
num_replicas = framework.num_replicas
process_count = framework.process_count
process_index = framework.process_index
save_served_model = framework.save_served_model
scatter_rows = framework.scatter_rows
set_random_seed = framework.set_random_seed
take_rows = framework.take_rows


def is_chief():
    """Returns whether this process is the one that writes files."""
    return process_index() == 0
