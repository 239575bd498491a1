import numpy as np

from declare import op
from domains import normal

op("L2Loss", lambda t: np.sum(t * t) / 2, domain=normal.calm, ulps=16)
