"""A SavedModel from another backend, by way of a process with TensorFlow.

A Keras network means the same on every backend, so what TensorFlow writes is
the served model a TensorFlow run would have left, any image size included;
JAX's own converter fixes more than that.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile

import keras

from alim_keras.errors import EnvironmentLacksError

_NETWORK = "network.keras"
_REQUEST = "request.json"


def save_in_tensorflow(network, path, image_shape, class_names=None):
    """Writes `network` as a SavedModel; see `backend.save_served_model`.

    Raises:
        EnvironmentLacksError: If the other process fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        network.save(os.path.join(folder, _NETWORK))
        request = {
            "path": os.path.abspath(path),
            "image_shape": list(image_shape),
            "class_names": class_names and list(class_names),
        }
        with open(
            os.path.join(folder, _REQUEST), "w", encoding="utf-8"
        ) as file:
            json.dump(request, file)
        package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            **os.environ,
            "KERAS_BACKEND": "tensorflow",
            "PYTHONPATH": os.pathsep.join(paths),
            # The other process serves a CPU's needs; this one may hold all
            # of the GPU.
            "CUDA_VISIBLE_DEVICES": "",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        module = "alim_keras.backend.serving_process"
        done = subprocess.run(
            [sys.executable, "-m", module, folder],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise EnvironmentLacksError(
            "The process that writes the SavedModel with TensorFlow failed: "
            f"{reason}. The network is in model.keras; layers of your own "
            "must be importable there."
        )


def _serve(folder):
    """What the other process does."""
    from alim_keras import backend

    # Registers the layers of its own that a network may have.
    importlib.import_module("alim_keras.networks")

    with open(os.path.join(folder, _REQUEST), encoding="utf-8") as file:
        request = json.load(file)
    network = keras.saving.load_model(
        os.path.join(folder, _NETWORK), compile=False
    )
    backend.save_served_model(
        network,
        request["path"],
        tuple(request["image_shape"]),
        request["class_names"],
    )


if __name__ == "__main__":
    _serve(sys.argv[1])
