"""On PYTHONPATH: a Python in which TensorFlow is not installed."""

import importlib.machinery
import sys

HIDDEN = ("tensorflow", "tensorflow_datasets", "tensorboard")


class WithoutTensorFlow(importlib.machinery.PathFinder):
    """Finds what is installed, but for some packages."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            return None
        return super().find_spec(name, path, target)

    @staticmethod
    def find_distributions(context):
        if context.name and context.name.replace("-", "_") in HIDDEN:
            return iter(())
        return importlib.machinery.PathFinder.find_distributions(context)


sys.meta_path[:] = [
    WithoutTensorFlow if finder is importlib.machinery.PathFinder else finder
    for finder in sys.meta_path
]
