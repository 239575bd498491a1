import numpy as np

import tw
from declare import expect, op, refuses
from domains import whole

SUMS = dict(domain=whole(-9, 9), zero_signs=False)


def like(d):
    """Draws a variable and a value of its shape."""
    first, second = d.inputs
    shape = d.shape()
    return [d(first, shape), d(second, shape)]


op("ReadVariableOp", lambda held: held, lambda d: [d("resource")], no_gradient="gradient_test.py: of what a handle leads to")
op("AssignVariableOp Assign", lambda held, value: [value], like)
op("AssignAddVariableOp AssignAdd", lambda held, value: [held + value], like, **SUMS)
op("AssignSubVariableOp AssignSub", lambda held, value: [held - value], like, **SUMS)
op("IsVariableInitialized", lambda held: True, lambda d: [d("ref")])
op("VarIsInitializedOp", lambda held: True, lambda d: [d("resource")])
for name in ("VarIsInitializedOp", "IsVariableInitialized"):
    for dtype in (np.float32, np.int64, np.bool_):
        held = np.zeros(2, dtype)
        expect(name, [tw.Variable(held)], [np.bool_(True)])
        expect(name, [tw.Variable(held, set=False)], [np.bool_(False)])
two, three = tw.Variable(np.zeros(2)), np.zeros(3)
for name in ("AssignAddVariableOp", "AssignSubVariableOp"):
    refuses(name, [two, three], "[2]", "[3]")
    refuses(name, [tw.Variable(three, set=False), three])
refuses("AssignVariableOp", [two, three], "[2]", "[3]", validate_shape=True)
refuses("AssignVariableOp", [two, np.int32(1)], "int32", "double")
refuses("ReadVariableOp", [two], "double", "float", dtype=np.float32)
refuses("ReadVariableOp", [tw.Variable(three, set=False)], dtype=np.float64)
