"""TensorFlow: what the replicas of a step do together."""

import functools

import tensorflow as tf

BAD_ROWS = (
    "x['index'] holds rows that the pseudo-label table does not have: they "
    "must be whole numbers from 0 to num_examples - 1."
)
BAD_SHARES = (
    "The replicas hold unequal shares of a batch, or odd ones, which mixup "
    "cannot pair as one device would. Use a batch size that is a multiple of "
    "twice the number of replicas, and drop the last, incomplete batch."
)

# An integer below 2**36 is two floats below 2**24, which are exact.
_SPLIT = 1 << 12


def num_replicas():
    """Returns the number of replicas that take part in the current step."""
    return tf.distribute.get_strategy().num_replicas_in_sync


def check_rows(index, num_examples):
    """Raises when a step meets an index outside the table (not under XLA)."""
    outside = tf.logical_or(index < 0, index >= num_examples)
    tf.debugging.Assert(
        tf.logical_not(tf.reduce_any(outside)), [BAD_ROWS], summarize=1
    )


def check_shares(x, even):
    """Raises when replicas hold unequal shares of a batch.

    Args:
        x: Dict of this replica's tensors, with `"index"` `(B,)`.
        even: Whether the shares must be even numbers, too.

    Returns:
        `x`, to go on with: what is made of it waits for the check.
    """
    context = _context()
    if context is None:
        return x
    sizes = context.all_gather(tf.shape(x["index"])[:1], axis=0)
    good = tf.reduce_all(sizes == sizes[0])
    if even:
        good = tf.logical_and(good, sizes[0] % 2 == 0)
    check = tf.debugging.Assert(good, [BAD_SHARES], summarize=1)
    with tf.control_dependencies([check] if check is not None else []):
        return tf.nest.map_structure(tf.identity, x)


def first_row(size):
    """Returns where this replica's `size` examples begin in the batch."""
    context = _context()
    return 0 if context is None else context.replica_id_in_sync_group * size


def all_gather(*tensors):
    """Concatenates `(B, ...)` tensors over all replicas; has a gradient.

    Every update of training state is a function of gathered tensors, so all
    replicas assign the same value and none drifts away. All tensors of a call
    travel together.

    Returns:
        The gathered tensor, or a list of them if there are several.
    """
    context = _context()
    gathered = list(tensors)
    if context is not None:
        # Each replica adds zeros where the others' rows are. TensorFlow's own
        # gathering takes two exchanges for each tensor, not one for all.
        rows = [_padded(_as_float(x), context) for x in tensors]
        rows = context.all_reduce("SUM", rows)
        gathered = [_as_before(x, like) for x, like in zip(rows, tensors)]
    return gathered[0] if len(gathered) == 1 else gathered


def _context():
    """The context of a step that several replicas share, or None."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context


def _padded(x, context):
    """Puts zeros before and after for the rows of the other replicas."""
    size, place = tf.shape(x)[0], context.replica_id_in_sync_group
    after = context.num_replicas_in_sync - 1 - place
    rest = [[0, 0]] * (len(x.shape) - 1)
    return tf.pad(x, [[place * size, after * size], *rest])


def _as_float(x):
    """Floats as they are; an integer as two that hold it exactly."""
    if x.dtype.is_integer:
        x = tf.cast(x, tf.int64)
        x = tf.stack([x // _SPLIT, x % _SPLIT], axis=-1)
    return tf.cast(x, tf.float32)


def _as_before(x, like):
    if like.dtype.is_integer:
        high, low = tf.unstack(tf.cast(x, tf.int64), axis=-1)
        x = high * _SPLIT + low
    return tf.cast(x, like.dtype)


def synchronise(layer):
    """Makes a BatchNormalization layer's statistics those of all replicas."""
    layer.synchronized = True
    layer._moments = functools.partial(_global_moments, layer)


def _global_moments(layer, x, mask):
    """As Keras's, with one exchange where Keras has three."""
    context = _context()
    if context is None or mask is not None:
        return type(layer)._moments(layer, x, mask)
    axes = layer._reduction_axes
    sums = tf.stack([tf.reduce_sum(x, axes), tf.reduce_sum(x * x, axes)])
    total = context.all_reduce("SUM", sums)
    # All replicas hold as many examples; see check_shares.
    count = tf.size(x) * context.num_replicas_in_sync // x.shape[layer.axis]
    mean, square = tf.unstack(total / tf.cast(count, x.dtype))
    return mean, tf.maximum(square - mean * mean, 0.0)
