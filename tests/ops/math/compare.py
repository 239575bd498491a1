import numpy as np

from declare import broadcast, expect, op

op("Equal", lambda x, y: x == y, broadcast)
op("NotEqual", lambda x, y: x != y, broadcast)
op("Less", np.less, broadcast)
op("LessEqual", np.less_equal, broadcast)
op("Greater", np.greater, broadcast)
op("GreaterEqual", np.greater_equal, broadcast)
op("LogicalAnd", np.logical_and, broadcast)
op("LogicalOr", np.logical_or, broadcast)

for name, different in (("Equal", False), ("NotEqual", True)):
    expect(name, [np.zeros(2), np.zeros(3)], [np.bool_(different)], incompatible_shape_error=False)
