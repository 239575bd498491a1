import numpy as np

from declare import broadcast, expect, op


def amount(y):
    """Returns the amount of a shift, limited to 0 and the number of bits less one."""
    return np.asarray(np.clip(y, 0, y.dtype.itemsize * 8 - 1), y.dtype)


op("BitwiseAnd", np.bitwise_and, broadcast)
op("BitwiseOr", np.bitwise_or, broadcast)
op("BitwiseXor", np.bitwise_xor, broadcast)
op("LeftShift", lambda x, y: np.left_shift(x, amount(y)), broadcast)
op("RightShift", lambda x, y: np.right_shift(x, amount(y)), broadcast)
op("Invert", np.invert)
expect("LeftShift", [np.int8([1, 1, -1]), np.int8([-3, 9, 8])], [np.int8([1, -128, -128])])
expect("RightShift", [np.int8([1, -128, -1]), np.int8([-3, 9, 8])], [np.int8([1, -1, -1])])
