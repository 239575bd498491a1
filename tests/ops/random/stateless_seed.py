import numpy as np

import philox
from declare import expect, op, refuses


def key_counter(seed):
    key, counter = philox.key_of(seed)
    return [np.uint64([key]), np.uint64([0, counter])]


def seeds(d):
    return [d("seed", (2,))]


op("StatelessRandomGetKeyCounter", key_counter, seeds)
op("StatelessRandomGetKeyCounterAlg", lambda seed: [*key_counter(seed), np.int32(1)], seeds)
op("StatelessRandomGetAlg", lambda: np.int32(1), lambda d: [])

# TensorFlow's results.
GOLDEN = [([0, 0], 0xdf7a3ef6dd5b9083, 0xff2f51a833da8054), ([1, 2], 0x908502c96d2f7fba, 0xf7734320619cb60b),
          ([-1, -2**31], 0x42510ae559752e39, 0xdf9793aff740da0a), ([2**31 - 1, 7], 0x379d64bb62a34adf, 0x78fa0cabac6f48ef),
          ([-2**63, 2**63 - 1], 0x330feeae2d840f5d, 0xe74182f532623f55)]
for seed, key, counter in GOLDEN:
    for dtype in (np.int32, np.int64):
        if np.array_equal(np.int64(seed), np.int64(seed).astype(dtype)):
            wanted = [np.uint64([key]), np.uint64([0, counter])]
            expect("StatelessRandomGetKeyCounter", [np.array(seed, dtype)], wanted)
            expect("StatelessRandomGetKeyCounterAlg", [np.array(seed, dtype)], [*wanted, np.int32(1)])
for name in ("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg"):
    refuses(name, [np.int64(1)], "seed")
    refuses(name, [np.int64([1])], "seed", "1", "2")
    refuses(name, [np.int32([1, 2, 3])], "seed", "3", "2")
