import numpy as np

from declare import broadcast, op
from domains import nonzero

op("Atan2", np.arctan2, broadcast, smooth=nonzero, ulps=2)
