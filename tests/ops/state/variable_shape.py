import numpy as np

import tw
from declare import op, refuses

op("VariableShape", lambda held, *, out_type: np.array(held.shape, out_type), lambda d: [d("input")])
refuses("VariableShape", [tw.Variable(np.zeros(3), set=False)], "not initialised")
refuses("VariableShape", [np.zeros(3)])
