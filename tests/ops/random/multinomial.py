import numpy as np

import philox
from declare import op, refuses
from domains import between


def drawn(d):
    d.set(seed=d.pick(1, -1, 2**63 - 1, d.integer(1, 2**62)), seed2=d.pick(0, 7, d.integer(0, 2**62)))
    rows, samples = (70, 133) if d.large else (d.integer(0, 4), d.integer(0, 9))
    x = d("logits", (rows, d.integer(1, 7)))
    if x.dtype.kind == "f" and x.shape[1] > 1 and d.integer(0, 1):  # a class with an infinite logit is never drawn
        x[:, 1:][x[:, 1:] > 5] = np.inf
    return [x, d("num_samples", of=samples)]


def classes(logits, samples, *, seed, seed2, output_dtype):
    return philox.drawn(seed % 2**64, seed2 % 2**64, logits, int(samples), 0)[0].astype(output_dtype)


# Without special numbers: a row needs a finite one.
op("Multinomial", classes, drawn, domain=between(0, 7).plain)
for name, parts in (([np.zeros(3, np.float32), np.int32(1)], ("logits", "[3]")), ([np.zeros((2, 0), np.float32), np.int32(1)], ("[2, 0]",)),
                    ([np.zeros((2, 3), np.float32), np.int32(-1)], ("num_samples", "-1")),
                    ([np.zeros((2, 3), np.float32), np.int32([1])], ("num_samples",)),
                    ([np.float32([[0, 1], [np.nan, -np.inf]]), np.int32(1)], ("row 1",))):
    refuses("Multinomial", name, *parts)


def stateless(d):
    inputs = drawn(d)
    del d.attrs["seed"], d.attrs["seed2"]
    return [*inputs, d("seed", of=(d.integer(-9, 9), d.integer(0, 2**31 - 1)))]


def by_seed(logits, samples, seed, *, output_dtype):
    return philox.drawn(*philox.key_of(seed), logits, int(samples), 0)[0].astype(output_dtype)


op("StatelessMultinomial", by_seed, stateless, domain=between(0, 7).plain)
some = [np.zeros((2, 3), np.float32), np.int32(1), np.int64([1, 2])]
refuses("StatelessMultinomial", [*some[:2], np.int64([1, 2, 3])], "seed", "3")
refuses("StatelessMultinomial", [*some[:2], np.int64(1)], "seed")
refuses("StatelessMultinomial", [some[0], np.int32(-1), some[2]], "num_samples", "-1")
refuses("StatelessMultinomial", [np.float32([[0, 1], [np.nan, -np.inf]]), *some[1:]], "row 1")
