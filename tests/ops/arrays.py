"""Short functions that make arrays for cases."""
import numpy as np


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def f32(*values):
    return np.array(values, np.float32)
