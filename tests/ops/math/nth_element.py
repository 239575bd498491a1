import numpy as np

from declare import op, refuses
from domains import distinct, everything, normal


def ranked(d):
    x = d("input", d.shape(least=1, sizes=(1, 1, 2, 3, 4, 5)))
    if not x.shape[-1]:
        x = d("input", (*x.shape[:-1], 4))
    return [x, d("n", of=d.integer(0, x.shape[-1] - 1))]


def nth(x, n, *, reverse):
    order = np.sort(x, -1)  # NaN comes last
    return order[..., -1 - n if reverse else n]


op("NthElement", nth, ranked, domain=everything(normal), smooth=distinct, zero_signs=False)

m = np.zeros((2, 3), np.float32)
for n in (3, -1, 2**31 - 1, -2**31):
    refuses("NthElement", [m, np.int32(n)], "n", n)
refuses("NthElement", [np.float32(1), np.int32(0)], "input")
refuses("NthElement", [m, np.int32([0])], "n")
refuses("NthElement", [m[:, :0], np.int32(0)], "0")
