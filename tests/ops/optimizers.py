"""Declarations of optimizer steps: one formula serves the dense op, its form on references, and its sparse form, which updates the given
rows one after the other."""
import dataclasses
import inspect

import numpy as np

import tw
from declare import op
from domains import Domain, between
from ulps import Near


def calm(x):
    """Accepts special numbers whose squares fit into every type."""
    return ~np.isfinite(x) | (x == 0) | (abs(x) > 0.01) & (abs(x) < 100)


def moderate(rng, shape, smooth):
    """Draws numbers whose squares fit into every type."""
    return np.exp2(rng.uniform(-6, 6, shape))


@dataclasses.dataclass(frozen=True)
class Plain(Domain):
    """A domain without special complex numbers."""

    def special(self, dtype):
        return None if np.dtype(dtype).kind == "c" else super().special(dtype)


def factor(low, high):
    """Returns a domain of factors; complex ones have a small imaginary part."""
    return dataclasses.replace(between(low, high).plain, complex=lambda rng, shape: rng.uniform(low, high, shape) + 1j * rng.uniform(-0.05, 0.05, shape))


# The domain of values whose root is taken. Complex ones are so far to the right that adding the square of a gradient does not bring them
# to the negative axis.
slot = Plain(moderate, lambda x: (x > 0.01) & (x < 100), lambda rng, shape: rng.uniform(8, 10, shape) * np.exp(1j * rng.uniform(-0.5, 0.5, shape)))
mild = Domain(lambda rng, shape, smooth: moderate(rng, shape, smooth) * rng.choice([-1, 1], shape), calm)
kept = factor(0.5, 0.94)  # 1 - x is exact in every type of real numbers
FACTORS = dict(alpha=mild, lr=factor(0.01, 1), rho=kept, momentum=kept, beta1=kept, beta2=kept, beta1_power=kept, beta2_power=kept,
               epsilon=factor(0.001, 0.1), l1=between(0, 2).plain, l2=between(0, 2).plain, l2_shrinkage=between(0, 1).plain)


def drawn(d):
    """Draws variables and gradient of one shape, and factors. In the sparse form the gradient is for some rows, of which some occur twice,
    except in short types, whose intermediate rounding has no oracle."""
    shape = d.shape() if "indices" not in d.inputs else (400, 61) if d.large else d.shape(least=1, most=4)
    like, rows = shape, []
    if "indices" in d.inputs:
        rows = d.rng.permutation(shape[0])[:d.integer(0, 300)]
        again = rows[:0] if d.types["T"] in ("half", "bfloat16") else d.rng.permutation(rows)[:d.integer(0, 50)]
        rows = d.rng.permutation(np.concatenate([rows, again]))
        like = (len(rows), *shape[1:])
    return [d(name, of=rows) if name == "indices" else d(name, shape if d.variable(name) else like if name in ("grad", "delta") else ())
            for name in d.inputs]


def oracle(name, formula):
    """Returns the oracle of an op. formula(variables..., g, factors and attributes, all by the op's names) returns [(value, size), ...];
    errors of the value count in ulps of the size."""
    names = [x["name"] for x in tw.ops()[name]["inputs"]]
    takes = list(inspect.signature(formula).parameters)
    variables = takes[:takes.index("g")]

    def step(*inputs, **attrs):
        given = dict(zip(names, inputs)) | attrs
        grad = given.get("grad", given.get("delta"))
        factors = {p: given[p] for p in takes[len(variables) + 1:] if p in given}
        arrays = [np.array(given[v]) for v in variables]
        if "indices" not in given:
            return [Near(*pair) for pair in formula(*arrays, grad, **factors)]
        sizes = [abs(x) for x in arrays]
        for row, part in zip(given["indices"], grad):
            for x, size, (value, own) in zip(arrays, sizes, formula(*(x[row] for x in arrays), part, **factors)):
                x[row], size[row] = value, np.fmax(size[row], abs(own))
        return [Near(x, size) for x, size in zip(arrays, sizes)]

    return step


def optimizer(dense, sparse, formula, asks=(), domain=None, **more):
    """Declares the ops of these names. asks: the attributes that the formula takes."""
    for name in (dense + " " + sparse).split():
        op(name, oracle(name, formula) if name in tw.ops() else np.add, drawn, domain=FACTORS | (domain or {}), asks=list(asks), zero_signs=False,
           denormals=False, types=dict(Tindices="int32 int64"), **dict(ulps=16 if name in dense.split() else 256, half_ulps=2) | more)
