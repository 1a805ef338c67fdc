"""Floating-point operations of networks, from their layers' shapes."""

import math

import keras


def macs_per_image(network):
    """Returns the multiply-adds of a forward pass on one image.

    Convolutions and dense layers count; batch normalisation, activations,
    pooling and additions, a few per cent together, do not.

    Args:
        network: A built functional or sequential `keras.Model`, or a layer.

    Example:

    >>> macs_per_image(alim_keras.networks.cifar_resnet18())
    555417600
    """
    if isinstance(network, keras.Model):
        return sum(macs_per_image(layer) for layer in network.layers)
    kernels = [
        weight
        for weight in network.weights
        if weight.name.endswith("kernel") and len(weight.shape) >= 2
    ]
    if not kernels:
        return 0
    # Each number of a kernel is used once for each place of the output.
    return _places(network) * sum(math.prod(k.shape) for k in kernels)


def _places(layer):
    try:
        return math.prod(layer.output.shape[1:-1])
    except (AttributeError, ValueError):
        return 1  # A dense head that was built, but never called by name.


def step_flops(macs, passes, forwards=0):
    """Returns the operations of a training step on one image.

    A multiply-add is two operations; the backward pass costs twice the
    forward pass.

    Args:
        macs: Multiply-adds of the forward pass.
        passes: How many forward and backward passes.
        forwards: How many forward passes without a backward one.
    """
    return 2 * macs * (3 * passes + forwards)
