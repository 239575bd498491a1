"""Optimizers, clipping, averages and schedules against TensorFlow's numbers, as training_peer.py wrote them down."""
import pathlib

import numpy as np
import pytest

import training_cases

GOLDEN = np.load(pathlib.Path(__file__).with_name("training_golden.npz"))


@pytest.mark.parametrize("case", training_cases.CASES)
def test_the_numbers_are_tensorflows(case):
    wanted = {name.split("|")[1]: GOLDEN[name] for name in GOLDEN.files if name.split("|")[0] == case}
    training_cases.compare(case, training_cases.ours(case), wanted)
