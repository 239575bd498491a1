import numpy as np

from declare import broadcast, expect, op

op("Complex", lambda re, im, *, Tout: (re + 0j + 1j * im).astype(Tout), broadcast)
op("Real", np.real)
op("Imag", np.imag)
op("Angle", np.angle, ulps=2)
op("ComplexAbs", np.abs, ulps=2)
special = np.array([complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(-0.0, -0.0), complex(3e300, 4e300)])
expect("ComplexAbs", [special], [np.array([np.inf, np.inf, 0, 5e300])], Tout=np.float64)
expect("Angle", [np.array([1, -1, 1j, -1j, complex(-1, -0.0), 0])], [np.array([0, np.pi, np.pi / 2, -np.pi / 2, -np.pi, 0])],
       Tout=np.float64)
