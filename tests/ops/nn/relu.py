import numpy as np

from declare import op
from domains import distinct

op("Relu", lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)), smooth=distinct, zero_signs=False)
op("Relu6", lambda x: np.where(np.isnan(x), x, np.clip(x, 0, 6)), smooth=distinct, zero_signs=False)
op("ReluGrad", lambda dy, x: np.where(x > 0, dy, 0), smooth=dict(features=distinct), zero_signs=False)
op("Relu6Grad", lambda dy, x: np.where((x > 0) & (x < 6), dy, 0), smooth=dict(features=distinct), zero_signs=False)
