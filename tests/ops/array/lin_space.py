import numpy as np

from declare import accepts, op, refuses
from domains import normal
from ulps import near


def ends(d):
    return [d("start", ()), d("stop", ()), d("num", of=100_003 if d.large else d.integer(1, 40))]


def spaced(start, stop, num):
    at = np.arange(num, dtype=np.longdouble) / max(int(num) - 1, 1)
    inside = np.where(at == 1, stop, start * (1 - at) + stop * at if np.isfinite(start + stop) else start + (stop - start) * at)
    return near(np.where(at == 0, start, inside), np.full(at.shape, max(abs(start), abs(stop))))


op("LinSpace", spaced, ends, domain=normal.calm, ulps=4)
accepts("LinSpace", [np.float32(np.inf), np.float32(1), np.int32(2)], np.float32([np.inf, 1]))
accepts("LinSpace", [np.float32(-0.0), np.float32(np.nan), np.int64(1)], np.float32([-0.0]))
accepts("LinSpace", [np.float32(-3e38), np.float32(3e38), np.int32(3)], np.float32([-3e38, 0, 3e38]))
for num in (0, -1, -2**31):
    refuses("LinSpace", [np.float32(0), np.float32(1), np.int32(num)], "num", num)
for num in (-2**63, 2**62, 2**63 - 1):
    refuses("LinSpace", [np.float32(0), np.float32(1), np.int64(num)])
refuses("LinSpace", [np.float32([0]), np.float32(1), np.int32(2)], "start")
refuses("LinSpace", [np.float32(0), np.float32([1]), np.int32(2)], "stop")
refuses("LinSpace", [np.float32(0), np.float32(1), np.int32([2])], "num")
