"""JAX: a model's `fit`, `evaluate` and `predict` on many devices."""

import contextlib

import jax
import keras
import numpy as np

from alim_keras.backend import jax_devices as devices
from alim_keras.backend.jax_placement import Placement
from alim_keras.backend.jax_placement import fingerprints
from alim_keras.errors import ConfigError


class OnManyDevices:
    """A model that is made under a `keras.distribution.DataParallel` keeps it.

    Its steps see the global batch, and all state is replicated. It places the
    batches by itself: Keras would refuse one that cannot be cut evenly over
    the devices, and copy one that lies there already. Made without a
    distribution it is an ordinary model.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._given_share = False
        self._placement = self._own_placement = None
        distribution = keras.distribution.distribution()
        if distribution is not None:
            self._placement = self._own_placement = Placement(distribution)
            if devices.process_count() > 1:
                self._own_placement = Placement(
                    distribution, all_processes=False
                )

    def fit(self, x=None, *args, validation_data=None, **kwargs):
        data = (x, *keras.tree.flatten(validation_data))
        with self._placing(self._placement, *data):
            if self._placement is not None:
                self._given_share = _check_share(x)
                self._check_agreement()
            return super().fit(
                x, *args, validation_data=validation_data, **kwargs
            )

    def evaluate(self, x=None, *args, **kwargs):
        with self._placing(self._placement, x):
            return super().evaluate(x, *args, **kwargs)

    def predict(self, x, *args, **kwargs):
        # Every process that calls it predicts all.
        with self._placing(self._own_placement, x):
            return super().predict(x, *args, **kwargs)

    @contextlib.contextmanager
    def _placing(self, where, *data):
        """Lets this model place the batches, and data sets make them there."""
        if where is None:
            yield
            return
        for one in data:
            if hasattr(one, "placement"):
                one.placement = where
        distribution = keras.distribution.distribution()
        share, self._given_share = self._given_share, False
        keras.distribution.set_distribution(None)
        try:
            yield
        finally:
            self._given_share = share
            keras.distribution.set_distribution(distribution)

    def _check_agreement(self):
        """Raises unless all processes begin with the same weights."""
        if devices.process_count() == 1:
            return
        numbers = fingerprints([v.value for v in self.variables])
        found = devices.gather_processes([int(number) for number in numbers])
        for variable, column in zip(self.variables, found.T):
            if np.ptp(column):
                raise ConfigError(
                    f"The workers begin with different values of "
                    f"{variable.path}. Call keras.utils.set_random_seed with "
                    "the same seed on all before the model is made."
                )

    def _symbolic_build(self, iterator=None, data_batch=None):
        if self._placement is None:
            super()._symbolic_build(iterator, data_batch)
            return
        # Metrics make their variables here.
        x = {
            "image": keras.KerasTensor((1, *self.image_shape)),
            "index": keras.KerasTensor((1,), dtype="int32"),
        }
        y = keras.KerasTensor((1, self.num_classes))
        with self._placement.distribution.scope():
            super()._symbolic_build(data_batch=(x, y))

    def make_train_function(self, force=False):
        if self._placement is None:
            super().make_train_function(force)
        elif force or self.train_function is None:
            self.train_function = self._over_devices(self.train_step)

    def make_test_function(self, force=False):
        if self._placement is None:
            super().make_test_function(force)
        elif force or self.test_function is None:
            self.test_function = self._over_devices(self.test_step)

    def make_predict_function(self, force=False):
        if self._placement is None:
            super().make_predict_function(force)
        elif force or self.predict_function is None:

            def step(state, data):
                outputs, others = self.predict_step(state, data)
                return outputs, (state[0], others)

            self.predict_function = self._over_devices(
                step, self._own_placement, concatenate_outputs=True
            )

    def _over_devices(self, step, where=None, concatenate_outputs=False):
        """Returns a step's function of a state and an iterator of batches."""
        where = where or self._placement
        if not self.run_eagerly:
            # Replicated, or the compiler might leave the queue in parts.
            step = jax.jit(
                step, donate_argnums=0, out_shardings=(None, where.whole)
            )
        run = self._make_function(step, concatenate_outputs)

        def run_placed(state, iterator):
            batches = (
                where.batch(data, self._given_share) for data in iterator
            )
            return run(where.spread(state), batches)

        return run_placed

    def jax_state_sync(self):
        if self._placement and getattr(self, "_jax_state", None):
            self._jax_state = {
                name: self._placement.own(list(values or ()))
                for name, values in self._jax_state.items()
            }
        super().jax_state_sync()


def _check_share(data):
    """Returns whether a data set gives this process a share of each batch.

    Raises:
        ConfigError: If it is another process's.
    """
    share = getattr(data, "share", (0, 1))
    if share == (0, 1):
        return False
    if share != (devices.process_index(), devices.process_count()):
        raise ConfigError(
            f"This process trains on part {devices.process_index()} of "
            f"{devices.process_count()} of each batch. Received: "
            f"train_dataset(..., shard={share})"
        )
    return True
