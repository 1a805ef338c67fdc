"""JAX: where the arrays of a training on many devices lie."""

import jax
import keras
import numpy as np
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from alim_keras.errors import ConfigError

_AXIS = "batch"


class Placement:
    """Where variables and batches lie, and how they get there.

    A variable is whole on every device, a batch is cut into rows. Between
    steps the variables of several processes are arrays of their own devices,
    which callbacks and files read and write like any other; the steps alone
    see arrays that span the processes. Both are the same memory.

    Args:
        distribution: The `keras.distribution.DataParallel` over devices of
            this process under which the variables are made.
        all_processes: Whether a step spans the devices of all processes.
            Defaults to True.
    """

    def __init__(self, distribution, all_processes=True):
        mesh = distribution.device_mesh.backend_mesh
        if mesh.is_multi_process:
            raise ConfigError(
                "A model's distribution must span this process's devices "
                "only; its steps span those of all. Use the scope of "
                "alim_keras.backend.make_strategy('multi_worker')."
            )
        self.distribution = distribution
        self._own_whole = NamedSharding(mesh, PartitionSpec())
        self._own_rows = NamedSharding(mesh, PartitionSpec(_AXIS))
        self._part, self._parts = 0, 1
        if all_processes and jax.process_count() > 1:
            self._part, self._parts = jax.process_index(), jax.process_count()
            # In the order of the processes, as their rows of a batch are.
            devices = sorted(
                jax.devices(), key=lambda d: (d.process_index, d.id)
            )
            mesh = Mesh(np.array(devices), (_AXIS,))
        self.whole = NamedSharding(mesh, PartitionSpec())
        self.rows = NamedSharding(mesh, PartitionSpec(_AXIS))

    def _is_cut(self, size):
        return size % self.whole.num_devices == 0

    def spread(self, arrays):
        """Returns variables' arrays as a step sees them, on all devices."""
        return jax.tree.map(lambda x: self._join(x, self.whole), arrays)

    def own(self, arrays):
        """Returns arrays that a step left as those of this process."""
        if self._parts == 1:
            return arrays

        def part(array):
            shards = [shard.data for shard in array.addressable_shards]
            return jax.make_array_from_single_device_arrays(
                array.shape, self._own_whole, shards
            )

        return jax.tree.map(part, arrays)

    def _join(self, array, sharding):
        """Makes one array of what all processes hold, without a copy."""
        if self._parts == 1 or not array.is_fully_addressable:
            return array
        shards = [shard.data for shard in array.addressable_shards]
        shape = array.shape
        if sharding is self.rows:
            shape = (shape[0] * self._parts, *shape[1:])
        return jax.make_array_from_single_device_arrays(shape, sharding, shards)

    def batch(self, data, is_share=False):
        """Returns a batch, in any nesting, on the devices.

        Args:
            data: What a data set gave: arrays of the host or of a device, or
                arrays that lie right already.
            is_share: Whether each process has rows of its own, which come
                one process after another in the batch. Defaults to False:
                each has the whole batch.
        """

        def place(leaf):
            if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
                return leaf
            return self._join(*self._placed(leaf, is_share))

        return jax.tree.map(place, data)

    def _placed(self, leaf, is_share):
        """Puts this process's part of a batch on its devices."""
        rows = leaf.shape[0] if leaf.ndim else 0
        if is_share:
            rows *= self._parts
        if not rows or not self._is_cut(rows):
            # Each device does all of it: right, if not fast.
            if is_share and self._parts > 1:
                raise ConfigError(
                    f"A batch must split evenly over "
                    f"{self.whole.num_devices} devices. Received: a batch of "
                    f"{rows}"
                )
            return jax.device_put(leaf, self._own_whole), self.whole
        if not is_share and self._parts > 1:
            step = rows // self._parts
            leaf = leaf[self._part * step : (self._part + 1) * step]
        return jax.device_put(leaf, self._own_rows), self.rows

    def gathering(self, function, arrays):
        """Returns a function from an index to a batch, of resident arrays.

        Args:
            function: Function of `arrays` and an index `(B,)`, which returns
                rows in any nesting, each computed from one entry of the index.
            arrays: Arrays in any nesting; they come to lie whole on each
                device, so that none has to ask another for a row.

        Returns:
            Function of the host's index array and `is_share`, see `batch`.
        """
        arrays = jax.device_put(arrays, self._own_whole)
        gathers = {
            self.whole: jax.jit(function, out_shardings=self._own_whole),
            self.rows: jax.jit(function, out_shardings=self._own_rows),
        }

        def gather(index, is_share=False):
            index, sharding = self._placed(index, is_share)
            found = gathers[sharding](arrays, index)
            return jax.tree.map(lambda x: self._join(x, sharding), found)

        return gather


def resident(function, arrays, placement=None):
    """As `Placement.gathering`; on the default device without a placement."""
    if placement is not None:
        return placement.gathering(function, arrays)
    arrays = jax.tree.map(keras.ops.convert_to_tensor, arrays)
    gather = jax.jit(function)
    return lambda index, is_share=False: gather(arrays, jax.device_put(index))


def beside(variables, arguments):
    """Returns arguments placed for a function that reads the variables.

    Rows are cut over the devices on which the variables lie, where they can
    be cut evenly.
    """
    sharding = variables[0].value.sharding if variables else None
    if not isinstance(sharding, NamedSharding):
        return arguments

    def place(leaf):
        cut = np.ndim(leaf) and leaf.shape[0] % sharding.num_devices == 0
        spec = PartitionSpec(_AXIS) if cut else PartitionSpec()
        return jax.device_put(leaf, NamedSharding(sharding.mesh, spec))

    return jax.tree.map(place, arguments)


@jax.jit
def fingerprints(arrays):
    """Returns a number for each array that tells different ones apart."""

    def fingerprint(array):
        bits = jax.numpy.ravel(array).astype("float32")
        bits = jax.lax.bitcast_convert_type(bits, "uint32")
        place = jax.lax.iota("uint32", bits.size)
        return jax.numpy.sum(bits * (2 * place + 1), dtype="uint32") >> 1

    return [fingerprint(array) for array in arrays]
