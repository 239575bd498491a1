import numpy as np

import philox
import several
from declare import expect, op, refuses
from domains import whole


def seeded(d):
    d.set(seed=d.pick(1, -1, 2**63 - 1, d.integer(1, 2**62)), seed2=d.pick(0, 7, d.integer(0, 2**62)))
    return [d("value")]


def shuffled(value, *, seed, seed2):
    if value.ndim == 0 or not value.size:
        return value
    return value[philox.shuffled(seed % 2**64, seed2 % 2**64, len(value), 0)[0]]


op("RandomShuffle", shuffled, seeded)


def by_key(d):
    return [d("value"), *several.key_counter_alg(d)]


def shuffled_by_key(value, key, counter, alg):
    if value.ndim == 0 or not value.size:
        return value
    return value[philox.shuffled(int(key[0]), int(counter[1]), len(value), int(counter[0]))[0]]


op("StatelessShuffle", shuffled_by_key, by_key, domain=dict(key=whole(0, 2**62)))
# TensorFlow's result.
KEY, COUNTER = np.array([0x123456789abcdef0], np.uint64), np.array([2**64 - 1, 77], np.uint64)
expect("StatelessShuffle", [np.arange(11, dtype=np.int32), KEY, COUNTER, np.int32(1)], [np.int32([7, 9, 8, 10, 0, 6, 2, 5, 3, 1, 4])])
good = [np.arange(3), np.uint64([1]), np.uint64([1, 2]), np.int32(1)]
refuses("StatelessShuffle", [good[0], np.uint64([1, 2]), *good[2:]], "key", "[2]")
refuses("StatelessShuffle", [*good[:2], np.uint64([1]), good[3]], "counter", "[1]")
refuses("StatelessShuffle", [*good[:3], np.int32(2)], "alg", "Threefry")
refuses("StatelessShuffle", [*good[:3], np.int32(7)], "alg", "7")
