"""Measures errors of results in units in the last place of their type (ulps)."""
import dataclasses
import os

import numpy as np

import tw

# Bits of the significand, the exponent of the largest power of 2, and that of the smallest denormal.
FORMATS = {"float16": (11, 15, -24), "bfloat16": (8, 127, -133), "float32": (24, 127, -149), "float64": (53, 1023, -1074)}
FORMATS |= {"complex64": FORMATS["float32"], "complex128": FORMATS["float64"]}
LEAST = float(os.environ.get("THALWEG_TEST_ULPS", 0))  # lower bound of the allowed error, for a device's own functions
SLACK = 2.0**-9  # the oracle's own rounding; half an ulp if NumPy has no type longer than double
if np.finfo(np.longdouble).nmant < 60:
    SLACK += 0.5


@dataclasses.dataclass
class Near:
    """A wanted value whose error is counted in ulps of `size`, such as the sum of the magnitudes of its terms."""
    value: np.ndarray
    size: np.ndarray


near = Near


def name_of(dtype):
    return dtype.names[0] if dtype.names else dtype.name


def widened(array):
    """Returns an input for an oracle: floating-point and complex numbers in extended precision, all others unchanged; for a variable, its
    value."""
    if isinstance(array, tw.Variable):
        array = array.array
    if array.dtype == tw.bfloat16:
        return tw.from_bfloat16(array).astype(np.longdouble)
    with np.errstate(invalid="ignore"):  # NaN may signal
        return array.astype({"f": np.longdouble, "c": np.clongdouble}[array.dtype.kind]) if array.dtype.kind in "fc" else array


def unit(size, form):
    """Returns one ulp at numbers of that size."""
    bits, largest, least = form
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.where(np.isfinite(size) & (size != 0), size, 1))[1] - bits
    exponent = np.where(size == 0, least, np.clip(exponent, least, largest + 1 - bits))
    return np.ldexp(np.longdouble(1), exponent.astype(np.int64).clip(-16000, 16000).astype(np.int32))


def difference(got, wanted, ulps, half_ulps=None, zero_signs=True, denormals=True):
    """Returns the first error in the array `got`, or None. The limits are those of declare.Declaration."""
    size = wanted.size if isinstance(wanted, Near) else None
    wanted = np.asarray(wanted.value if isinstance(wanted, Near) else wanted)
    name = name_of(got.dtype)
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    if name not in FORMATS:
        same = got == wanted
        return None if np.all(same) else f"{first(~np.asarray(same), got, wanted)}"
    form, ulps = FORMATS[name], max(ulps, LEAST)
    got, wanted = widened(got), widened(wanted) if wanted.dtype.kind != "c" else wanted.astype(np.clongdouble)
    if name in ("float16", "bfloat16"):
        ulps = min(max(ulps, 0.5), 1) if half_ulps is None else half_ulps
    if got.dtype.kind == "c":
        ulps = max(ulps, 3)  # of the magnitude: parts are products and sums
    with np.errstate(all="ignore"):
        off = distance(got, np.asarray(wanted, got.dtype), unit(np.abs(wanted if size is None else size), form), form)
    wrong = ~(off <= ulps + SLACK)
    if not denormals:
        wrong &= ~((np.abs(got) < least_normal(form)) & (np.abs(wanted) < least_normal(form)))
    if wrong.any():
        return f"{first(wrong, got, wanted)}, {np.nanmax(np.where(wrong, np.where(np.isnan(off), np.inf, off), 0)):.4g} ulps"
    if zero_signs and got.dtype.kind == "f":
        wrong = (got == 0) & (wanted == 0) & (np.signbit(got) != np.signbit(wanted))
        return f"sign of zero: {first(wrong, got, wanted)}" if wrong.any() else None
    return None


def least_normal(form):
    return np.ldexp(np.longdouble(1), 1 - form[1])


def distance(got, wanted, ulp, form):
    """Returns the distance in ulps, 0 between two NaNs and between equal infinities. A value too large for the type counts as infinity,
    which is one ulp beyond the largest number."""
    if got.dtype.kind == "c":
        off = np.hypot(apart(got.real, wanted.real, form), apart(got.imag, wanted.imag, form)) / ulp
        return np.where(np.isfinite(wanted), off, 0)
    return np.where(np.isnan(got) & np.isnan(wanted), 0, apart(got, wanted, form) / ulp)


def apart(got, wanted, form):
    beyond = np.ldexp(np.longdouble(1), form[1] + 1)
    return np.abs(np.clip(got, -beyond, beyond) - np.clip(wanted, -beyond, beyond))


def first(wrong, got, wanted):
    """Describes the first wrong element."""
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    return f"{got[at]!s} is not {np.broadcast_to(wanted, got.shape)[at]!s} at {list(at)} ({int(np.sum(wrong))} of {got.size})"
