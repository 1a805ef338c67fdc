"""Which entries of a memory are an anchor's positives, beyond equal classes.

All masks are float32 `(B, M)` in the form that `SupervisedContrastive` takes:
1 positive, 0 negative, `LEFT_OUT` for no part in it. The M entries are the
embeddings of the global batch, its keys, and then the queue.
"""

import keras

from alim_keras.losses.contrastive import LEFT_OUT


def neighbour_mask(similarities, count):
    """The `count` entries most similar to each anchor.

    Args:
        similarities: Tensor `(B, M)`.
        count: k, at most M. Entries as similar as the k-th all count.

    Example:

    >>> alim_keras.losses.neighbour_mask([[0.9, 0.1, 0.5]], 2)
    [[1.0, 0.0, 1.0]]
    """
    ops = keras.ops
    similarities = ops.convert_to_tensor(similarities)
    kth = ops.top_k(similarities, count)[0][:, -1:]
    return ops.cast(similarities >= kth, "float32")


def own_places(first, size, batch_size, num_entries):
    """Where each anchor stands itself, and where its key does.

    Args:
        first: Place of this replica's first anchor in the global batch.
        size: B, the number of its anchors.
        batch_size: The size of the global batch.
        num_entries: M.

    Returns:
        A pair of boolean tensors `(B, M)`.
    """
    ops = keras.ops
    place = ops.expand_dims(ops.arange(num_entries), 0)
    mine = ops.expand_dims(first + ops.arange(size), 1)
    return place == mine, place == mine + batch_size


def with_own_key(mask, is_self, is_own_key):
    """Makes an anchor's key a positive, and leaves the anchor itself out."""
    mask = keras.ops.where(is_own_key, 1.0, mask)
    return keras.ops.where(is_self, LEFT_OUT, mask)


def instance_mask(is_own_key, batch_size):
    """MoCo's: the own key against the queue; the rest of the batch is out.

    Args:
        is_own_key: Boolean tensor `(B, M)`.
        batch_size: The size of the global batch.

    Reference:
    - [He et al., 2020](https://arxiv.org/abs/1911.05722) (InfoNCE)
    """
    ops = keras.ops
    place = ops.expand_dims(ops.arange(ops.shape(is_own_key)[1]), 0)
    mask = ops.where(place < 2 * batch_size, LEFT_OUT, 0.0)
    return ops.where(is_own_key, 1.0, mask)


def contrast_mask(positives, is_self, is_own_key=None):
    if is_own_key is not None:
        positives = keras.ops.where(is_own_key, 1.0, positives)
    return keras.ops.where(is_self, LEFT_OUT, positives)
