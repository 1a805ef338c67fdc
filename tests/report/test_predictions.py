import json

import numpy as np

from alim_keras.report import labels as predictions

NAMES = ["ant", "bee", "cow", "döner"]
P = np.array([[0.5, 0.1, 0.3, 0.1], [0.0, 1.0, 0.0, 0.0]])


def test_ranked_rows_by_hand():
    s = np.array([[False, True, True, False], [True, False, False, True]])
    first, second = predictions.ranked_rows(["x", "y"], P, s, NAMES)
    # 0.3 and 0.1 of 0.4; 0.6 outside, and the likeliest, ant, is there.
    assert first[:3] == ["x", '["cow", "bee"]', "[0.75, 0.25]"]
    assert first[3:] == ["0.600000", "1", "ant", "0.500000"]
    # Nothing inside: all alike, in the order of the classes.
    assert second[1:5] == ['["ant", "döner"]', "[0.5, 0.5]", "1.000000", "1"]
    full = np.ones((1, 4), bool)
    (third,) = predictions.ranked_rows(["z"], P[:1], full, NAMES)
    assert json.loads(third[2]) == [0.5, 0.3, 0.1, 0.1]
    assert third[3:5] == ["0.000000", "0"]
