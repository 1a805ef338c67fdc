"""The linear classifier and the projection that PiCO puts on a backbone."""

import keras


def _torch_dense(units, fan_in, **kwargs):
    """A Dense layer drawn as PyTorch draws its own: U(-1, 1) / sqrt(fan_in)."""
    limit = fan_in**-0.5
    return keras.layers.Dense(
        units,
        kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
        bias_initializer=keras.initializers.RandomUniform(-limit, limit),
        **kwargs,
    )


def classifier_head(feature_dim, num_classes, name="classifier"):
    """Returns a linear layer `(B, feature_dim)` to float32 logits `(B, C)`."""
    head = _torch_dense(num_classes, feature_dim, dtype="float32", name=name)
    head.build((None, feature_dim))
    return head


def projection_head(feature_dim, embedding_dim=128, name="projection"):
    """Returns PiCO's two-layer head, `(B, feature_dim)` to `(B, D)`.

    Linear, ReLU, linear, without normalisation layers; the caller scales the
    result to unit length.
    """
    hidden = _torch_dense(feature_dim, feature_dim, activation="relu")
    out = _torch_dense(embedding_dim, feature_dim, dtype="float32")
    return keras.Sequential(
        [keras.Input((feature_dim,)), hidden, out], name=name
    )
