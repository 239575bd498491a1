import numpy as np

from declare import op, refuses
from domains import between, everything
from special import log_softmax, softmax


def rows(d):
    return [d("logits", d.shape(least=2 if d.large else 1, sizes=(0, 1, 2, 3, 4, 5)))]


def long_rows(d):
    return [d("logits", (2, 5003))]


logits = everything(between(-20, 20)).calm
op("Softmax", softmax, rows, domain=logits, ulps=64, denormals=False)
op("LogSoftmax", log_softmax, rows, domain=logits, ulps=4, also=(long_rows,))
for name in ("Softmax", "LogSoftmax"):
    refuses(name, [np.float32(1)], "logits")
