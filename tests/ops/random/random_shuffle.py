import philox
from declare import op


def seeded(d):
    d.set(seed=d.pick(1, -1, 2**63 - 1, d.integer(1, 2**62)), seed2=d.pick(0, 7, d.integer(0, 2**62)))
    return [d("value")]


def shuffled(value, *, seed, seed2):
    if value.ndim == 0 or not value.size:
        return value
    return value[philox.shuffled(seed % 2**64, seed2 % 2**64, len(value), 0)[0]]


op("RandomShuffle", shuffled, seeded)
