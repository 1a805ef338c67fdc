"""Multiply-adds of networks, against sums on paper."""

import keras
import pytest

from alim_keras import networks
from alim_keras.benchmarks import flops


def test_resnet_18_layer_by_layer():
    # Output places x kernel numbers of each convolution.
    stem = 32**2 * (9 * 3 * 64)
    stage1 = 4 * 32**2 * (9 * 64 * 64)
    stage2 = 16**2 * (9 * 64 * 128 + 3 * 9 * 128 * 128 + 64 * 128)
    stage3 = 8**2 * (9 * 128 * 256 + 3 * 9 * 256 * 256 + 128 * 256)
    stage4 = 4**2 * (9 * 256 * 512 + 3 * 9 * 512 * 512 + 256 * 512)
    assert stem == 1_769_472
    assert stage1 == 150_994_944
    assert stage2 == stage3 == stage4 == 134_217_728
    total = stem + stage1 + stage2 + stage3 + stage4
    # The 0.56 G of the literature, which adds 512 x 10 for the classifier.
    assert total == 555_417_600
    assert flops.macs_per_image(networks.cifar_resnet18()) == total


def test_a_quarter_of_the_width():
    # All but the stem shrink by 16, the stem by 4.
    expected = (555_417_600 - 1_769_472) // 16 + 1_769_472 // 4
    network = networks.cifar_resnet18(width=16)
    assert flops.macs_per_image(network) == expected


@pytest.mark.parametrize(
    "shape, expected",
    [
        # Both poolings: 28 -> 14 -> 7.
        (
            (28, 28, 1),
            28**2 * 9 * 32 + 14**2 * 9 * 32 * 64 + 7 * 7 * 64 * 128,
        ),
        # Below 16 pixels only the second: 8 -> 4.
        ((8, 8, 1), 8**2 * 9 * 32 + 8**2 * 9 * 32 * 64 + 4 * 4 * 64 * 128),
    ],
)
def test_small_cnn(shape, expected):
    assert flops.macs_per_image(networks.small_cnn(shape)) == expected


def test_heads_and_depthwise_convolutions():
    assert flops.macs_per_image(networks.classifier_head(512, 10)) == 5120
    # 512 x 512 and 512 x 128.
    assert flops.macs_per_image(networks.projection_head(512, 128)) == 327_680
    network = keras.Sequential(
        [
            keras.Input((6, 6, 4)),
            keras.layers.DepthwiseConv2D(3, strides=2, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.Conv2D(8, 1, groups=2),
        ]
    )
    # 3 x 3 places: 9 numbers for each of 4 channels, then 8 x 2 numbers.
    assert flops.macs_per_image(network) == 9 * (9 * 4) + 9 * (8 * 2)


def test_operations_of_a_step():
    # Two operations a multiply-add; backward is twice forward.
    assert flops.step_flops(100, passes=1) == 600
    assert flops.step_flops(100, passes=2, forwards=1) == 1400
    assert flops.step_flops(100, passes=0, forwards=1) == 200
