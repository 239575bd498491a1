import numpy as np

from declare import expect, op, refuses
from domains import normal
from ulps import near

NUMBERS = "half bfloat16 float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128"
OTHERS = ("string bool qint8 qint16 qint32 quint8 quint16 float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz "
          "int4 uint4 int2 uint2")
EQUATIONS = """ij->ij ij->ji ij->j ij-> -> i->ii ii->i iij->ji ii-> ijk->kij ...->... ...i->...i i...->...i ...ij->...ji ba ...ii->...i
    ij,jk->ik ij,kj->ki ij,jk ij,ij->ij ij,ij-> i,j->ij i,ij->ij bij,bjk->bik bij,bkj->bki ijb,bjk->kbi ii,ij->j ij,j->i ij,i->ij ,ij->ji
    ...ij,...jk->...ik ...ij,jk->...ik i...j,...j->...i ...,...->... ab...,b...c->...ca aab,bcc->ac i,jk->kji abcd,dbea->ec ij,ik->ijk
    i,j,k->kij ij,jk,kl->il ...i,...ij,...j->... ij,ij,ij->i a,ab,abc,abcd->d ij,k->i""".split()


def factors(d):
    equation = d.pick(*EQUATIONS)
    if len(equation.split("->")[0].split(",")) == 1 and d.integer(0, 1):
        equation = d.pick(*EQUATIONS)
    d.set(equation=equation)
    sizes = {c: d.integer(20, 60) if d.large and equation.count(c) < 5 else d.integer(1 if d.smooth else 0, 3) for c in equation}
    dots = tuple(d.rng.integers(1, 4, d.integer(0, 2)))
    arrays = []
    for term in equation.split("->")[0].split(","):
        own = tuple(1 if d.integer(0, 3) == 0 else size for size in dots)[d.integer(0, len(dots)):]
        before, _, after = term.partition("...")
        shape = [sizes[c] for c in before] + list(own if "..." in term else ()) + [sizes[c] for c in after]
        arrays.append(d("inputs", shape))
    return [arrays]


def empty(equation, arrays):
    """Computes a product without elements, because np.einsum then writes beyond its result. A result with the inputs' empty axes is
    empty."""
    small, large = (np.einsum(equation, *[np.zeros([size or n for size in x.shape]) for x in arrays]).shape for n in (1, 2))
    return np.zeros([size * (size == other) for size, other in zip(small, large)], arrays[0].dtype)


def einsum(inputs, *, equation):
    def of(arrays):
        if equation == "i->ii":
            return np.diag(arrays[0])
        if not all(x.size for x in arrays):
            return empty(equation, arrays)
        return np.einsum(equation, *arrays) if equation != "->" else arrays[0]
    return near(of(inputs), of([abs(x) for x in inputs])) if inputs[0].dtype.kind in "fc" else of(inputs)


op("Einsum", einsum, factors, domain=normal.calm, types=dict(T=NUMBERS), given=dict(equation="...->..."), ulps=24, half_ulps=3,
   zero_signs=False, no_kernel={"products are of numbers": OTHERS})

x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
expect("Einsum", [x, y], [x @ y], equation=" i j , j k -> i k ", N=2)
letters = "abcdefghijklmnopqrstuvwxyzABC012"  # NumPy has no more axes
long = np.arange(8.0).reshape([2, 2, 2] + [1] * 29)
expect("Einsum", [long], [long.transpose(range(31, -1, -1))], equation=f"{letters}->{letters[::-1]}", N=1)
for equation, *parts in (("ij,jk->ik,k", "position 9"), ("i%,jk->ik", "position 1", "%"), ("ij,jk->iz", "position 8", "z"),
                         ("i..,jk->ik", "position 1"), ("...i...,jk->ik", "position 4"), ("ij,jk->i->k", "position 8"),
                         ("ij->ij", "1 tensors", "2 inputs"),
                         ("i,jk->ik", "[2, 3]", "'i'"), ("ij,kj->ik", "'j'", "3", "4"), ("...ij,...jkl->ik", "[3, 4]"),
                         ("...j,jk->k", "'...'", "[2]")):
    refuses("Einsum", [x, y], *parts, equation=equation, N=2)
refuses("Einsum", [np.zeros((2, 3)), np.zeros((3, 3))], "[2]", "[3]", equation="...j,...j->...", N=2)
refuses("Einsum", [np.zeros((2, 3))], "'i'", "2", "3", equation="ii->i", N=1)
