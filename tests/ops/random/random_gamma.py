import numpy as np

import philox
import several
import special
from declare import expect, op, refuses
from domains import between, whole
from ulps import near

L = np.longdouble
alphas = between(0.05, 60).calm
WHY = "samples move with alpha at a fixed probability, not in a fixed stream: RandomGammaGrad has an oracle, and random_test.py its use"


def seeded(d):
    lead, own = several.shapes(d)
    several.seeds(d)
    return [d("shape", of=lead), d("alpha", own)]


def by_seed(d):
    lead, own = several.shapes(d)
    return [d("shape", of=lead + own), several.seed(d), d("alpha", own)]


def by_key(d):
    lead, own = several.shapes(d)
    return [d("shape", of=lead + own), *several.key_counter_alg(d), d("alpha", own)]


def samples(seed, seed2, first, alpha, shape):
    shape = tuple(int(n) for n in shape)
    if not np.prod(shape):
        return np.zeros(shape)
    found = philox.sampled(philox.gamma, seed, seed2, first, alpha.reshape(-1), int(np.prod(shape)) // alpha.size)
    return near(found[..., 0].reshape(shape), found[..., 1].reshape(shape))


op("RandomGamma", lambda shape, alpha, *, seed, seed2: samples(seed % 2**64, seed2 % 2**64, 0, alpha, (*shape, *alpha.shape)), seeded,
   domain=dict(alpha=alphas), ulps=32, no_gradient=WHY)
op("StatelessRandomGammaV2", lambda shape, seed, alpha: samples(*philox.key_of(seed), 0, alpha, shape), by_seed, domain=dict(alpha=alphas), ulps=32,
   no_gradient=WHY)
op("StatelessRandomGammaV3", lambda shape, key, counter, alg, alpha: samples(int(key[0]), int(counter[1]), int(counter[0]), alpha, shape), by_key,
   domain=dict(key=whole(0, 2**62), alpha=alphas), ulps=32, no_gradient=WHY)

# TensorFlow's results.
KEY, COUNTER = np.array([0x123456789abcdef0], np.uint64), np.array([2**64 - 1, 77], np.uint64)
GOLDEN = {np.float16: ([[0.022369384765625, 1.2353515625, 3.6875, 51.21875], [0.23681640625, 0.459228515625, 4.63671875, 41.0625]],
                       [[0.0011072158813476562, 1.6748046875, 0.5224609375, 36.875], [0.0214385986328125, 1.498046875, 0.52880859375, 52.03125]], 0),
          np.float32: ([[0.022353144362568855, 1.2356003522872925, 3.687769651412964, 51.21785354614258],
                        [0.23670966923236847, 0.45934170484542847, 4.635134696960449, 41.051021575927734]],
                       [[0.0011058361269533634, 1.6745948791503906, 0.5225631594657898, 36.8865966796875],
                        [0.021431440487504005, 1.4977688789367676, 0.5289629101753235, 52.02031707763672]], 0),
          np.float64: ([[0.022353139736403273, 1.2356003874890387, 3.6877695571405233, 51.217854067302376],
                        [0.23670965113780904, 0.4593417194443983, 4.635134632814567, 41.05102168461193]],
                       [[0.0011058358039696006, 1.67459483177507, 0.5225631396131872, 36.88659759788291],
                        [0.021431437588426732, 1.4977689140589103, 0.5289628982182357, 52.020317976392455]], 1e-13)}
for dtype, (keyed, seeds, tolerance) in GOLDEN.items():
    alpha = np.array([0.3, 1, 2.5, 40], dtype)
    expect("StatelessRandomGammaV3", [np.int32([2, 4]), KEY, COUNTER, np.int32(1), alpha], [np.array(keyed, dtype)], tolerance or 1e-30)
    expect("StatelessRandomGammaV2", [np.int64([2, 4]), np.int32([3, 9]), alpha], [np.array(seeds, dtype)], tolerance or 1e-30)
expect("RandomGamma", [np.int32([2]), np.float32([0.3, 2.5])],
       [np.float32([[0.16814681887626648, 4.275980472564697], [0.013252858072519302, 1.7811808586120605]])], 1e-30, seed=5, seed2=6)

# Alphas at and outside of the ends.
odd = np.float32([0, np.inf, np.nan, -0.5, -1, -np.inf])
expect("StatelessRandomGammaV2", [np.int32([2, 6]), np.int32([3, 9]), odd], [np.float32([[0, np.inf, np.nan, np.nan, np.nan, np.nan]] * 2)])

two = np.float32([1, 2])
refuses("RandomGamma", [np.int32([-2]), two], "-2")
refuses("RandomGamma", [np.int32(2), two], "shape")
for name, more in (("StatelessRandomGammaV2", [np.int64([1, 2])]), ("StatelessRandomGammaV3", [np.uint64([1]), np.uint64([1, 2]), np.int32(1)])):
    refuses(name, [np.int32([-2]), *more, np.float32(1)], "-2")
    refuses(name, [np.int32(2), *more, two], "shape")
    refuses(name, [np.int32([2, 3]), *more, two], "'shape' is [2, 3]", "shape [2] of 'alpha'")
    refuses(name, [np.int32([]), *more, two], "'shape' is []", "[2]")
    refuses(name, [np.int32([2, 1]), *more, two], "[2, 1]")
refuses("StatelessRandomGammaV2", [np.int32([2]), np.int64([1, 2, 3]), two], "seed", "[3]")
refuses("StatelessRandomGammaV2", [np.int32([2]), np.int64(1), two], "seed")
good = [np.int32([2]), np.uint64([1]), np.uint64([1, 2]), np.int32(1), two]
refuses("StatelessRandomGammaV3", [good[0], np.uint64([1, 2]), *good[2:]], "key", "[2]")
refuses("StatelessRandomGammaV3", [*good[:2], np.uint64([1]), *good[3:]], "counter", "[1]")
refuses("StatelessRandomGammaV3", [*good[:3], np.int32(2), two], "alg", "Threefry")
refuses("StatelessRandomGammaV3", [*good[:3], np.int32(7), two], "alg", "7")


# ---- The derivative of a sample ----


def slopes(d):
    alpha = d("alpha", d.pick((), (3,), (2, 3)))
    drawn = d.rng.gamma(np.asarray(alpha, np.float64), size=d.pick(alpha.shape, (4, *alpha.shape)))
    return [alpha, d("sample", of=np.maximum(drawn, 1e-30))]


def slope_of(alpha, sample):
    """Returns -(dP/dalpha) / (dP/dsample), where P(alpha, x) is the sum over k of x^(alpha + k) exp(-x) / gamma(alpha + k + 1)."""
    alpha, x = np.broadcast_arrays(alpha, sample)
    term, total = 1 / alpha, np.zeros(x.shape, L)  # of the sum, over x^alpha exp(-x) / gamma(alpha)
    with np.errstate(under="ignore"):
        for k in range(700):
            total = total + term * (np.log(x) - special.digamma(alpha + k + 1))
            term = term * x / (alpha + k + 1)
    return near(-total * x, np.maximum(1, abs(total * x)))


op("RandomGammaGrad", slope_of, slopes, domain=dict(alpha=between(0.05, 60).plain), ulps=1024)
# TensorFlow's results.
alpha, sample = [0.01, 0.5, 1, 10, 100, 1e3, 1e5], [1e-3, 0.2, 2, 12, 105, 990, 1.001e5]
wanted = [0.6354138007185822, 0.7940505663308433, 1.6316914623496996, 1.112329443018088, 1.0263027070238382, 0.9951490959698932, 1.0005015009128533]
expect("RandomGammaGrad", [np.array(alpha), np.array(sample)], [np.array(wanted)], 1e-10)
nan = np.nan
expect("RandomGammaGrad", [np.array([0, -1, 1, 1, nan, 1]), np.array([1.0, 1, 0, -1, 1, nan])], [np.array([nan, nan, 0, nan, nan, nan])])
refuses("RandomGammaGrad", [np.ones(2), np.ones(3)], "[2]", "[3]")
