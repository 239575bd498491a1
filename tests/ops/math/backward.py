import numpy as np

from declare import op
from domains import nonzero, normal
from ulps import near

op("SqrtGrad", lambda y, dy: dy / 2 / np.conj(y), domain=dict(y=nonzero.calm, dy=normal.calm), ulps=4)
op("RsqrtGrad", lambda y, dy: -dy * np.conj(y) ** 3 / 2, domain=normal.calm, ulps=4, half_ulps=2)
op("ReciprocalGrad", lambda y, dy: -dy * np.conj(y) ** 2, domain=normal.calm, ulps=4)
op("TanhGrad", lambda y, dy: near(dy * (1 - y * y), abs(dy) * (1 + abs(y * y))), domain=normal.calm, ulps=4)
op("SigmoidGrad", lambda y, dy: dy * y * (1 - y), domain=normal.calm, ulps=4)
