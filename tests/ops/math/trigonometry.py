import dataclasses

import numpy as np

from declare import op
from domains import between, everything, normal


def inside(domain):
    """Returns the domain without complex numbers near 1 and -1, where the inverse functions have no derivative."""
    return dataclasses.replace(domain, complex=lambda rng, shape: rng.uniform(0.2, 0.7, shape) * np.exp(1j * rng.uniform(-3.1, 3.1, shape)))


fraction, above_1 = inside(between(-1, 1)), inside(between(1, 20))
op("Tan", np.tan, smooth=fraction, ulps=2)
op("Asin", np.arcsin, domain=everything(fraction), smooth=fraction, ulps=5)
op("Acos", np.arccos, domain=everything(fraction), smooth=fraction, ulps=5)
op("Atan", np.arctan, smooth=inside(normal), ulps=5)
op("Sinh", np.sinh, domain=everything(between(-20, 20)), ulps=3)
op("Cosh", np.cosh, domain=everything(between(-20, 20)), ulps=3)
op("Asinh", np.arcsinh, smooth=inside(normal), ulps=5)
op("Acosh", np.arccosh, domain=everything(above_1), smooth=above_1, ulps=5)
op("Atanh", np.arctanh, domain=everything(fraction), smooth=fraction, ulps=8)
