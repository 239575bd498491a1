import numpy as np

from declare import broadcast, op
from domains import nonzero, positive


def unless_zero(f):
    return lambda x, y: np.where(x == 0, 0, f(x, y))


op("MulNoNan", lambda x, y: np.where(y == 0, 0, x * y), broadcast, zero_signs=False)
op("Xdivy", unless_zero(np.divide), broadcast, smooth=nonzero, ulps=1, zero_signs=False)
op("Xlogy", unless_zero(lambda x, y: x * np.log(y)), broadcast, smooth=dict(x=nonzero, y=positive), ulps=3, zero_signs=False)
op("Xlog1py", unless_zero(lambda x, y: x * np.log1p(y)), broadcast, smooth=dict(x=nonzero, y=positive), ulps=4, zero_signs=False)
