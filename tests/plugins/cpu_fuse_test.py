"""Fusion on the CPU: a fused set gives the same bits as its single nodes, on any number of threads and for every shape. Values that only
members read take no memory. A node that is not fused has a reason. Each kind of fusion can be switched off."""
import numpy as np
import pytest

import thalweg as tw

ODD = [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3.4e38, -3.4e38, 88.7, -104, 0.5]
FUSE = "plugin.org.thalweg.cpu.fuse"
UNARY = ("abs", "neg", "sign", "square", "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "floor", "round", "relu", "relu6", "elu",
         "softplus", "atan", "reciprocal")
BINARY = ("add_v2", "sub", "mul", "real_div", "maximum", "minimum", "squared_difference", "div_no_nan", "atan2")
GRADIENTS = ("tanh_grad", "sigmoid_grad", "relu_grad", "elu_grad", "rsqrt_grad")
REDUCTIONS = ("sum", "mean", "max", "min", "prod")


def numbers(rng, dtype, shape):
    """Returns numbers of every kind, including special values."""
    values = rng.normal(scale=3, size=shape)
    if values.size > 1000:
        values.reshape(-1)[rng.choice(values.size, len(ODD), replace=False)] = ODD
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def same(a, b):
    """Returns whether a and b have the same bits, except for the payload of NaNs."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    whole = {2: np.uint16, 4: np.uint32, 8: np.uint64}[a.itemsize]
    return bool(np.all((a.reshape(-1).view(whole) == b.reshape(-1).view(whole)) | (np.isnan(a.reshape(-1)) & np.isnan(b.reshape(-1)))))


class Drawn:
    """A random graph over a matrix: each value has the shape of the whole ("full"), of a row, of a column, or of one element."""

    def __init__(self, rng, columns, dtype):
        self.rng = rng
        self.graph = tw.Graph()
        with self.graph:
            self.feeds = {"x": tw.placeholder(dtype, [None, columns]), "y": tw.placeholder(dtype, [None, columns]),
                          "row": tw.placeholder(dtype, [columns]), "column": tw.placeholder(dtype, [None, 1]), "one": tw.placeholder(dtype, [])}
            inner = tw.ops.reverse_v2(self.feeds["x"], [0])  # in memory that the plan may reuse
            self.values = [(inner, "full"), (self.feeds["y"], "full"), (self.feeds["row"], "row"),
                           (self.feeds["column"], "column"), (self.feeds["one"], "one")]
            for _ in range(rng.integers(3, 16)):
                self.add()
            made = self.values[5:]
            chosen = {len(made) - 1, *rng.integers(0, len(made), rng.integers(0, 3))}
            # A fetched value has memory of its own, so an op follows each: the results of a set may then reuse the memory of its inputs.
            self.fetches = [tw.ops.reverse_v2(made[i][0], [0]) for i in sorted(chosen)]

    def pick(self, *lies):
        fitting = [v for v in self.values if v[1] in lies]
        return fitting[-1 - min(len(fitting) - 1, self.rng.geometric(0.4) - 1)]  # prefers the latest

    def add(self):
        kind = self.rng.choice(["unary", "binary", "binary", "gradient", "column", "reduce", "bias", "choose", "clip", "softmax", "cast"])
        o, rng = tw.ops, self.rng
        x, y = self.pick("full")[0], self.pick("full", "row", "column", "one")[0]
        if kind == "unary":
            self.values.append((getattr(o, rng.choice(UNARY))(x), "full"))
        elif kind == "binary":
            a, b = (x, y) if rng.integers(2) or y.shape != x.shape and rng.integers(2) else (y, x)
            self.values.append((getattr(o, rng.choice(BINARY))(a, b), "full"))
        elif kind == "gradient":
            self.values.append((getattr(o, rng.choice(GRADIENTS))(x, self.pick("full")[0]), "full"))
        elif kind == "column":
            c, d = self.pick("column")[0], self.pick("column", "one")[0]
            self.values.append((getattr(o, rng.choice(BINARY))(c, d), "column"))
        elif kind == "reduce":
            self.values.append((getattr(o, rng.choice(REDUCTIONS))(x, [-1], keep_dims=True), "column"))
        elif kind == "bias":
            self.values.append((o.bias_add(x, self.pick("row")[0]), "full"))
        elif kind == "choose":
            self.values.append((o.select_v2(o.less(x, y), x, self.pick("full", "one")[0]), "full"))
        elif kind == "clip":
            self.values.append((o.clip_by_value(x, tw.constant(-1.5, x.dtype), tw.constant(2.0, x.dtype)), "full"))
        elif kind == "softmax":
            self.values.append((o.softmax(x), "full"))
        else:
            between = rng.choice(["float16", "bfloat16", "float64", "float32"])
            self.values.append((o.cast(o.square(o.cast(x, DstT=between)), DstT=x.dtype), "full"))

    def run(self, feeds, **options):
        session = tw.Session(self.graph, **options)
        named = {self.feeds[k]: v for k, v in feeds.items()}
        with np.errstate(all="ignore"):
            return session, session.run(self.fetches, named)


def table(rng, dtype, rows, columns):
    return {"x": numbers(rng, dtype, (rows, columns)), "y": numbers(rng, dtype, (rows, columns)), "row": numbers(rng, dtype, columns),
            "column": numbers(rng, dtype, (rows, 1)), "one": dtype(0.75)}


def claims(session, fetches, feeds=()):
    plan = session.plan(fetches, feeds)
    return [c for c in plan["claims"] if c["compiler"] == "fuse" and not c["refused"]], plan


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_have_the_bits_of_the_single_nodes(seed):
    rng = np.random.default_rng(seed)
    columns = int(rng.choice([2, 3, 7, 16, 100, 1000, 5000]))
    dtype = [np.float32, np.float32, np.float64, np.float16][seed % 4]
    drawn = Drawn(rng, columns, dtype)
    rows = max(1, int(rng.choice([5000, 40000]) // columns))
    feeds = table(rng, dtype, rows, columns)
    plain, wanted = drawn.run(feeds, compilers="off", threads=1)
    others = [table(rng, dtype, n, columns) for n in (1, rows // 2 + 1, 3 * rows)]
    wanted_others = [plain.run(drawn.fetches, {drawn.feeds[k]: v for k, v in f.items()}) for f in others]
    for options in ({"threads": 1}, {"threads": 2}, {"threads": 3, "engine": "counted"}, {"threads": 8}, {"engine": "fixed"}):
        session, found = drawn.run(feeds, compilers="require", **options)
        assert all(map(same, wanted, found)), (seed, options)
        for other, answer in zip(others, wanted_others):
            found = session.run(drawn.fetches, {drawn.feeds[k]: v for k, v in other.items()})
            assert all(map(same, answer, found)), (seed, options, other["x"].shape)


def test_the_random_graphs_are_fused():
    """Without this, the test above would prove nothing."""
    fused = 0
    for seed in range(20):
        drawn = Drawn(np.random.default_rng(seed), 100, np.float32)
        session, _ = drawn.run(table(drawn.rng, np.float32, 100, 100))
        fused += sum(len(c["nodes"]) for c in claims(session, drawn.fetches, {v: np.shape(f) for v, f in zip(drawn.feeds.values(), table(
            drawn.rng, np.float32, 100, 100).values())})[0])
    assert fused > 100


# ---- Patterns ----

def softmax(x):
    e = tw.ops.exp(x - tw.ops.max(x, [-1], keep_dims=True))
    return e / tw.ops.sum(e, [-1], keep_dims=True)


def layer_norm(x, scale, shift):
    d = x - tw.ops.mean(x, [-1], keep_dims=True)
    variance = tw.ops.mean(tw.ops.square(d), [-1], keep_dims=True)
    return d * tw.ops.rsqrt(variance + 1e-5) * scale + shift


def chain(x):
    y = tw.ops.relu(x * 2.0 + 1.0)
    return tw.ops.maximum(y * x - 0.5, x)


def one_claim(build, shape, **options):
    with tw.Graph() as g:
        x = tw.placeholder("float32", shape)
        y = build(x)
    taken, plan = claims(tw.Session(g, **options), [y], {x: shape})
    return g, x, y, taken, plan


@pytest.mark.parametrize("build, nodes", [
    (chain, 6), (softmax, 5), (lambda x: layer_norm(x, np.linspace(1, 2, 512, dtype="f"), np.linspace(0, 1, 512, dtype="f")), 9),
    (lambda x: tw.ops.relu(tw.ops.bias_add(x, np.linspace(0, 1, 512, dtype="f"))), 2),
    (lambda x: tw.ops.sum(tw.ops.square(x), [-1]), 2)])
def test_patterns_are_one_part_without_memory_for_what_lies_between(build, nodes):
    shape = [64, 512]
    g, x, y, taken, plan = one_claim(build, shape)
    assert [len(c["nodes"]) for c in taken] == [nodes] and len(plan["nodes"]) == 1
    whole = 64 * 512 * 4
    single = tw.Session(g, compilers="off").plan([y], {x: shape})
    assert plan["peak_bytes"] <= 128 * 1024 <= whole and (nodes == 2 or single["peak_bytes"] >= whole)
    value = numbers(np.random.default_rng(1), np.float32, shape)
    wanted = tw.Session(g, compilers="off").run(y, {x: value})
    assert all(same(wanted, tw.Session(g, threads=t).run(y, {x: value})) for t in (1, 2, 8))


def test_a_step_says_what_was_fused():
    g, x, y, _, _ = one_claim(chain, [64, 512])
    stats = tw.StepStats()
    tw.Session(g).run(y, {x: np.ones((64, 512), "f")}, stats=stats)
    (node,) = [n for n in stats.nodes if n.op == "fuse"]
    assert node.name == "+".join(op.name for op in g.operations() if op.type in ("Mul", "AddV2", "Relu", "Sub", "Maximum"))


def test_a_result_lies_where_an_input_was_that_nobody_reads_later():
    def build(x):
        return tw.ops.reverse_v2(tw.ops.relu(tw.ops.bias_add(tw.ops.reverse_v2(x, [0]), np.ones(512, "f"))), [0])

    _, _, _, taken, plan = one_claim(build, [64, 512])
    single = one_claim(build, [64, 512], compilers="off")[4]
    assert len(taken) == 1 and plan["peak_bytes"] <= single["peak_bytes"]


def test_training_gives_the_same_weights():
    losses = []
    for compilers in ("off", "require"):
        with tw.Graph() as g:
            x = tw.placeholder("float32", [None, 64])
            w = tw.Variable(np.linspace(-1, 1, 64 * 128, dtype="f").reshape(64, 128))
            b = tw.Variable(np.zeros(128, "f"))
            h = tw.ops.tanh(tw.ops.bias_add(tw.ops.mat_mul(x, w), b))
            loss = tw.ops.mean(tw.ops.square(softmax(h) - 0.25), [0, 1])
            step = tw.train.Adam(0.01).minimize(loss)
            initializer = tw.initializer()
        session = tw.Session(g, compilers=compilers)
        session.run(initializer)
        value = numbers(np.random.default_rng(2), np.float32, (50, 64))
        losses.append([session.run([loss, step], {x: value})[0] for _ in range(5)])
    assert same(np.array(losses[0]), np.array(losses[1]))


# ---- Sums with products ----

def sums(session, fetches, feeds=()):
    return [c for c in session.plan(fetches, feeds)["claims"] if c["compiler"] == "product_sum" and not c["refused"]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(100, 20, 80), (70, 1, 130), (129, 64, 33), (2, 3, 4096), (300, 5, 513)])
@pytest.mark.parametrize("transpose_a, transpose_b", [(False, False), (True, False), (False, True), (True, True)])
def test_a_product_is_added_as_it_is_computed(dtype, sizes, transpose_a, transpose_b):
    m, k, n = sizes
    rng = np.random.default_rng(m)
    with tw.Graph() as g:
        a = tw.placeholder(dtype, [k, m] if transpose_a else [m, k])
        b = tw.placeholder(dtype, [n, k] if transpose_b else [k, n])
        c = tw.placeholder(dtype, [m, n])
        product = tw.ops.mat_mul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        kept = tw.ops.reverse_v2(c, [0])  # memory that may be overwritten
        fetches = [tw.ops.reverse_v2(kept + product, [1]), tw.ops.mat_mul(a, b, transpose_a=transpose_a, transpose_b=transpose_b) + c]
    feeds = {v: numbers(rng, dtype, v.shape) for v in (a, b, c)}
    with np.errstate(all="ignore"):
        wanted = tw.Session(g, compilers="off", disable_pass="cse").run(fetches, feeds)
        for options in ({"threads": 1}, {"threads": 3}, {"threads": 8, "engine": "counted"}):
            session = tw.Session(g, compilers="require", disable_pass="cse", **options)
            assert all(map(same, wanted, session.run(fetches, feeds))), options
    assert len(sums(session, fetches, {v: v.shape for v in feeds})) == 2


def test_a_sum_that_a_loop_keeps_is_added_to_in_place():
    with tw.Graph() as g:
        a, b = tw.placeholder("float32", [64, 8]), tw.placeholder("float32", [8, 128])
        total = tw.while_loop(lambda i, s: i < 10, lambda i, s: (i + 1, s + tw.ops.mat_mul(a, b)), [tw.constant(0), tw.ops.fill([64, 128], 1.0)])[1]
    rng = np.random.default_rng(3)
    feeds = {a: rng.integers(-8, 8, (64, 8)).astype("f"), b: rng.integers(-8, 8, (8, 128)).astype("f")}
    assert np.array_equal(tw.Session(g).run(total, feeds), 10 * (feeds[a] @ feeds[b]) + 1)


def test_one_plan_serves_terms_of_other_shapes():
    rng = np.random.default_rng(4)
    with tw.Graph() as g:
        a, b, c = tw.placeholder("float32", [128, 64]), tw.placeholder("float32", [64, 64]), tw.placeholder("float32", None)
        y = c + tw.ops.mat_mul(a, b)
    session = tw.Session(g)
    feeds = {a: rng.integers(-8, 8, (128, 64)).astype("f"), b: rng.integers(-8, 8, (64, 64)).astype("f")}
    for shape in ((128, 64), (1, 64), (64,), (2, 128, 64), (), (128, 64)):
        term = rng.integers(-8, 8, shape).astype("f")
        assert np.array_equal(session.run(y, {**feeds, c: term}), term + feeds[a] @ feeds[b]), shape


@pytest.mark.parametrize("build", [
    lambda x: np.ones((64, 64), "f") + tw.ops.mat_mul(x[:, :32], x[:, :32], transpose_b=True),
    lambda x: tw.ops.relu(tw.ops.bias_add(tw.ops.mat_mul(x, x, transpose_b=True), np.ones(64, "f"))), lambda x: tw.ops.relu(tw.ops.exp(x))])
def test_what_is_only_waited_for_runs(build):
    """No node reads the set, so it has no output to write to."""
    with tw.Graph() as g:
        x = tw.placeholder("float32", [64, 512])
        waited = build(x)
        with tw.control_dependencies([waited]):
            y = x * 2.0
    feeds = {x: np.ones((64, 512), "f")}
    for runtime_setting in ({}, {"threads": 1}, {"engine": "counted"}):
        session = tw.Session(g, **runtime_setting)
        assert np.array_equal(session.run(y, feeds), 2 * feeds[x])
        session.run([waited.operation], feeds)
    plan = tw.Session(g).plan(y, {x: [64, 512]})
    assert all(c["refused"] for c in plan["claims"] if waited.operation.name in c["nodes"])


@pytest.mark.parametrize("build, taken, why", [
    (lambda x: tw.ops.mat_mul(x, x, transpose_a=True) + np.ones((512, 512), "f"), 1, ""),
    (lambda x: tw.ops.mat_mul(x, x, transpose_a=True) + np.ones(512, "f"), 0, ""),
    (lambda x: tw.ops.mat_mul(x, x, transpose_b=True) + np.ones((64, 64), "f"), 0, "so deep that adding it costs little"),
    (lambda x: tw.ops.mat_mul(x, np.ones((512, 4), "f")) + np.ones((64, 4), "f"), 0, "the sum is small")])
def test_only_sums_that_gain_by_it_are_taken(build, taken, why):
    with tw.Graph() as g:
        x = tw.placeholder("float32", [64, 512])
        y = build(x)
    session = tw.Session(g)
    assert len(sums(session, [y], {x: [64, 512]})) == taken
    assert why in " ".join(n["why"] for n in session.plan([y], {x: [64, 512]})["left"])


# ---- Nodes that are not fused ----

@pytest.mark.parametrize("build, why", [
    (lambda x: tw.ops.exp(x), "nothing beside it"),
    (lambda x: tw.ops.relu(tw.ops.sum(tw.ops.square(x), [0], keep_dims=True)), "does not reduce whole rows"),
    (lambda x: tw.ops.transpose(tw.ops.exp(x), [1, 0]), "nothing beside it"),
])
def test_what_is_left_says_why(build, why):
    assert why in " ".join(n["why"] for n in one_claim(build, [64, 512])[4]["left"])


def test_small_tensors_run_as_single_nodes():
    assert one_claim(chain, [10, 10])[3] == []


def test_whole_numbers_divide_alone_and_the_error_names_the_node():
    with tw.Graph() as g:
        x = tw.placeholder("int32", [None])
        y = tw.ops.floor_div(x * x, x, name="quotient") + x
    with pytest.raises(tw.InvalidArgumentError, match="quotient.*division of 0 by zero"):
        tw.Session(g).run(y, {x: np.arange(10000, dtype="i")})
    value = np.arange(1, 10000, dtype="i")
    assert np.array_equal(tw.Session(g).run(y, {x: value}), 2 * value)


def test_a_value_that_is_read_between_two_members_does_not_tie_a_knot():
    """A product reads b, and a later member reads the product: the set would wait for itself."""
    with tw.Graph() as g:
        x = tw.placeholder("float32", [128, 128])
        a = tw.ops.exp(x)
        b = tw.ops.tanh(a)
        m = tw.ops.mat_mul(b, b)
        y = tw.ops.relu(m + b)
    taken, plan = claims(tw.Session(g), [y], {x: [128, 128]})
    assert [len(c["nodes"]) for c in taken] == [2, 2] and not [c for c in plan["claims"] if c["refused"]]


# ---- Switches ----

@pytest.mark.parametrize("setting, parts", [("all", [2, 5]), ("none", []), ("elementwise", [2]), ("rows", [5]), ("sums", [])])
def test_each_kind_can_be_switched_off(setting, parts):
    runtime = tw.Runtime(**{FUSE: setting})
    with tw.Graph(runtime=runtime) as g:
        x, z = tw.placeholder("float32", [64, 512]), tw.placeholder("float32", [64, 512])
        fetches = [softmax(x), tw.ops.exp(z) + z]
    taken, _ = claims(tw.Session(g), fetches, {x: [64, 512], z: [64, 512]})
    assert sorted(len(c["nodes"]) for c in taken) == parts


def test_a_word_that_the_setting_does_not_know_is_refused():
    runtime = tw.Runtime(**{FUSE: "loops"})
    with tw.Graph(runtime=runtime) as g, pytest.raises(tw.Error):
        tw.Session(g).run(tw.ops.exp(tw.constant([1.0])))
    (cpu,) = [p for p in runtime.plugins() if p.id == "org.thalweg.cpu"]
    assert "setting 'fuse' names 'loops'; known: all, none, or some of elementwise,rows,sums" in cpu.reason
