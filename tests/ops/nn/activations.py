import numpy as np

from arrays import zeros
from declare import op, refuses
from domains import between, everything, nonzero, normal
from ulps import near

SCALE, SCALE_ALPHA = np.longdouble("1.0507009873554804934193349852946"), np.longdouble("1.7580993408473768599402175208123")
SLOPES = dict(alpha=[0.25, -0.5, 0.0, 2.0])  # the schema's 0.2 is rounded to the type first

reach = everything(between(-30, 30))


op("LeakyRelu", lambda x, *, alpha: np.where(x > 0, x, alpha * x), attrs=SLOPES, smooth=nonzero)
op("LeakyReluGrad", lambda dy, x, *, alpha: np.where(x > 0, dy, alpha * dy), attrs=SLOPES, smooth=dict(gradients=normal, features=nonzero))
op("Elu", lambda x: np.where(x < 0, np.expm1(x), x), domain=reach, ulps=4, smooth=nonzero)
op("EluGrad", lambda dy, y: near(np.where(y < 0, dy * (y + 1), dy), np.where(y < 0, abs(dy) * (1 - y), abs(dy))), ulps=2, zero_signs=False,
   smooth=dict(gradients=normal, outputs=nonzero))
op("Selu", lambda x: np.where(x < 0, SCALE_ALPHA * np.expm1(x), SCALE * x), domain=reach, ulps=5, smooth=nonzero)
op("SeluGrad", lambda dy, y: near(dy * np.where(y < 0, y + SCALE_ALPHA, SCALE), abs(dy) * np.where(y < 0, SCALE_ALPHA - y, SCALE)), ulps=3,
   zero_signs=False,
   smooth=dict(gradients=normal, outputs=nonzero))
op("Softplus", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))), domain=reach, ulps=6)
op("SoftplusGrad", lambda dy, x: dy / (1 + np.exp(-x)), domain=dict(features=reach, gradients=normal.calm), ulps=8)
op("Softsign", lambda x: x / (1 + abs(x)), ulps=2, smooth=nonzero)
op("SoftsignGrad", lambda dy, x: dy / (1 + abs(x)) ** 2, domain=normal.calm, ulps=4,
   smooth=dict(gradients=normal, features=nonzero))

for name in ("LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"):
    refuses(name + "Grad", [zeros(2, 3), zeros(3, 2)], "[2, 3]", "[3, 2]")
