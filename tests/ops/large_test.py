"""Results beyond 32 MiB, which kernels write past the caches, and outputs that share parts of inputs: they have the same numbers as small
results, at any alignment of start and end."""
import numpy as np

import cases
import tw

COUNTS = [9_000_001, (1 << 23) + 17]  # numbers of floats that do not fill whole cache lines


def agree(op, inputs, wanted, **attrs):
    got = tw.run(op, inputs, **attrs)[0]
    same = got.dtype == wanted.dtype and np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f")
    cases.holds(f"{op} of {inputs[0].dtype}[{inputs[0].size}]", same)


rng = np.random.default_rng(5)
for count in COUNTS:
    x, y = (rng.normal(size=count).astype(np.float32) for _ in range(2))
    x[:3] = np.nan, np.inf, -0.0
    agree("AddV2", [x, y], x + y)
    agree("Mul", [x, np.float32(3)], x * np.float32(3))
    agree("Neg", [x], -x)
    agree("Relu", [x], np.where(x < 0, np.float32(0), x))
    agree("ReluGrad", [y, x], np.where(x > 0, y, np.float32(0)))
whole = rng.integers(-9, 9, 4_300_001)
agree("Sub", [whole, whole[::-1].copy()], whole - whole[::-1])
halves = rng.normal(size=17_000_001).astype(np.float16)
agree("AddV2", [halves, halves], halves + halves)
rows = rng.normal(size=(3, 2_900_003)).astype(np.float32)
agree("AddV2", [rows, rows[:1]], rows + rows[:1])
divisors = whole.copy()
divisors[divisors == 0] = 1
agree("FloorDiv", [whole, divisors], whole // divisors)
divisors[4_000_000] = 0
cases.refuses("a division by zero far into a large result", lambda: tw.run("FloorDiv", [whole, divisors]), "4000000", "by zero")

table = rng.normal(size=(8, 4099)).astype(np.float32)
agree("Bitcast", [table], table.view(np.int32), type=np.int32)
for k, row in enumerate(tw.run("Unpack", [table], num=8)):
    cases.holds(f"row {k} of 8", np.array_equal(row, table[k]))
agree("Slice", [table, np.array([2, 0]), np.array([4, 4099])], table[2:6])
texts = np.array([f"text {i}".encode() for i in range(6)], object).reshape(3, 2)
for k, row in enumerate(tw.run("Unpack", [texts], num=3)):
    cases.holds(f"texts {k} of 3", list(row) == list(texts[k]))
cases.finish()
