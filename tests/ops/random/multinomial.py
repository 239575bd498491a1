import numpy as np

from declare import op, refuses
from domains import between


def drawn(d):
    return [d("logits", (d.integer(0, 4), d.integer(1, 7))), d("num_samples", of=d.integer(0, 9))]


op("Multinomial", None, drawn, domain=between(0, 7).plain, no_oracle="random_test.py computes its stream")
for name, parts in (([np.zeros(3, np.float32), np.int32(1)], ("logits", "[3]")), ([np.zeros((2, 0), np.float32), np.int32(1)], ("[2, 0]",)),
                    ([np.zeros((2, 3), np.float32), np.int32(-1)], ("num_samples", "-1")),
                    ([np.zeros((2, 3), np.float32), np.int32([1])], ("num_samples",)),
                    ([np.float32([[0, 1], [np.nan, -np.inf]]), np.int32(1)], ("row 1",))):
    refuses("Multinomial", name, *parts)
