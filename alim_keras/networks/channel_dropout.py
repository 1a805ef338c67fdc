"""Dropout of whole channels that resumes where it stopped."""

import random

import keras

from alim_keras import backend
from alim_keras import draws


@keras.saving.register_keras_serializable(package="alim_keras")
class ChannelDropout(keras.layers.Layer):
    """Sets whole channels of an image to zero, in training only.

    The others are divided by `1 - rate`. It is `keras.layers.SpatialDropout2D`
    with one difference: Keras keeps the state of its random numbers in a
    `SeedGenerator`, which no checkpoint holds. Here the mask is a function of
    (seed, call, place in the batch), and seed and call are a weight, so that
    a run that was interrupted goes on bit for bit.

    Under a distribution strategy of TensorFlow every replica counts places
    from 0, so the replicas draw the same masks for their different images. A
    copy with the same weights, such as a key encoder, starts with the same
    masks.

    Args:
        rate: Float in [0, 1), the share of channels that is dropped.
        seed: Integer from 0 below 2**31. Defaults to `None`, which draws one
            from Python's random numbers, as Keras does; see
            `keras.utils.set_random_seed`.

    Example:

    >>> layer = alim_keras.networks.ChannelDropout(0.25)
    >>> layer(np.ones((2, 4, 4, 8)), training=True).shape
    (2, 4, 4, 8)

    Reference:
    - [Tompson et al., 2014](https://arxiv.org/abs/1411.4280)
    """

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(
                f"Argument `rate` must be in [0, 1). Received: rate={rate!r}"
            )
        self.rate = rate
        self.seed = seed

    def build(self, input_shape):
        seed = random.randrange(2**31) if self.seed is None else self.seed
        # Seed and number of calls.
        self.state = self.add_weight(
            shape=(2,),
            initializer=lambda shape, dtype: keras.ops.convert_to_tensor(
                [seed, 0], dtype
            ),
            dtype=backend.INTEGER,
            trainable=False,
            name="state",
        )

    def call(self, inputs, training=None):
        if not training or self.rate == 0:
            return inputs
        ops = keras.ops
        seed, call = ops.unstack(ops.convert_to_tensor(self.state))
        draw = draws.uniform(
            seed,
            call,
            ops.arange(ops.shape(inputs)[0], dtype="int32"),
            inputs.shape[-1],
            "channel_dropout",
        )
        self.state.assign(ops.stack([seed, call + 1]))
        kept = ops.cast(draw >= self.rate, inputs.dtype) / (1.0 - self.rate)
        return inputs * ops.expand_dims(kept, (1, 2))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
