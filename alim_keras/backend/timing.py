"""What a benchmark needs of a framework; see the modules it chooses from.

`Program` compiles one part of a step as the framework's users would,
`Epochs` reads batches as `fit` does, `FitLoop` trains on them by `fit`'s own
function, `wait` blocks until results are there, `peak_device_memory` reads an
accelerator's counter.
"""

import keras

if keras.config.backend() == "tensorflow":
    from alim_keras.backend.tensorflow_timing import Epochs
    from alim_keras.backend.tensorflow_timing import FitLoop
    from alim_keras.backend.tensorflow_timing import Program
    from alim_keras.backend.tensorflow_timing import peak_device_memory
    from alim_keras.backend.tensorflow_timing import wait
else:
    from alim_keras.backend.jax_timing import Epochs
    from alim_keras.backend.jax_timing import FitLoop
    from alim_keras.backend.jax_timing import Program
    from alim_keras.backend.jax_timing import peak_device_memory
    from alim_keras.backend.jax_timing import wait

__all__ = ["Epochs", "FitLoop", "Program", "peak_device_memory", "wait"]
