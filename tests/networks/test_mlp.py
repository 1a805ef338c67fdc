import keras
import numpy as np

from alim_keras.networks import BatchNormalization
from alim_keras.networks import make_backbone
from alim_keras.networks import mlp


def test_shapes_and_parameters():
    network = mlp((1, 1, 7), width=5)
    assert network.output_shape == (None, 5)
    # 7 x 5 and 5 x 5 of the dense layers, gamma and beta of 2 x 5 each.
    assert network.count_params() == 35 + 25 + 2 * 20
    sizes = [layer.units for layer in network.layers if "Dense" in str(layer)]
    assert sizes == [5, 5]


def test_the_hand_worked_forward_pass():
    network = mlp((1, 1, 2), width=2)
    for layer in network.layers:
        if isinstance(layer, keras.layers.Dense):
            layer.kernel.assign([[1.0, 2.0], [3.0, -1.0]])
        if isinstance(layer, BatchNormalization):
            # Mean 0 and variance 1 - 1e-5, so that nothing changes.
            layer.moving_variance.assign(np.full(2, 1.0 - 1e-5))
    # (1, -1): (1 - 3, 2 + 1) = (-2, 3), ReLU (0, 3); (9, -3), ReLU (9, 0).
    result = network(np.array([[[[1.0, -1.0]]]]), training=False)
    np.testing.assert_allclose(result, [[9.0, 0.0]], rtol=1e-6)


def test_the_commands_find_it_by_name():
    network, normalised = make_backbone("mlp", (1, 1, 3), width=4)
    assert normalised
    assert network.name == "mlp"
    assert network.output_shape == (None, 4)
    assert make_backbone("mlp", (1, 1, 3))[0].output_shape == (None, 256)
