import numpy as np

import tw
from declare import op, refuses
from gather_nd import gather_nd, places


def picked(d):
    shape = d.shape(most=5)
    return [d("resource", shape), d("indices", of=places(d, shape))]


op("ResourceGatherNd", gather_nd, picked, types=dict(Tindices="int32 int64"), no_gradient="gradient_test.py: of what a handle leads to")
m = tw.Variable(np.zeros((2, 3), np.float32))
for at in (2, -1):
    refuses("ResourceGatherNd", [m, np.int32([[0, 0], [at, 0]])], at, dtype=np.float32)
refuses("ResourceGatherNd", [m, np.int32([[0, 0, 0]])], "[1, 3]", "[2, 3]", dtype=np.float32)
