"""The kernel pack of oneDNN: its kernels are chosen, the library really computes, and its results have the same bits on any number of
threads. The library is opened when it is first needed. Without the library or the pack everything works as before."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw

BUILD = pathlib.Path(os.environ["THALWEG_BINARY_DIR"])
PACK = "org.thalweg.onednn"
RNG = np.random.default_rng(5)
SESSIONS = [dict(threads=n, engine=e) for n in (1, 2, 3, 8) for e in ("fixed", "counted")]


def setting(**values):
    return {f"plugin.{PACK}.{key}": value for key, value in values.items()}


@pytest.fixture(scope="module")
def packed():
    """A runtime in which the library does all work that it supports."""
    return tw.Runtime(threads=8, **setting(least_work=1))


@pytest.fixture(scope="module")
def plain():
    """A runtime without the pack."""
    return tw.Runtime(threads=8, disabled_plugins=PACK)


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def step(runtime, op, inputs, options, plan=False, **attrs):
    """Runs one op on fed inputs; lists of int32 are constants. Returns its result, with plan also the kernel's spec."""
    graph = tw.Graph(runtime)
    with graph:
        values, feeds = [], {}
        for x in inputs:
            if isinstance(x, list):
                values.append(tw.constant(np.array(x, np.int32)))
            else:
                values.append(tw.placeholder(tw.as_dtype(x.dtype), x.shape))
                feeds[values[-1]] = x
        y = getattr(tw.ops, op)(*values, **attrs)
    session = tw.Session(graph, **options)
    result = session.run(y, feeds)
    if not plan:
        return result
    nodes = session.plan(y, {v: x.shape for v, x in feeds.items()})["nodes"]
    return result, next(n["kernel"] for n in nodes if n["op"] == op)


PRODUCTS = [  # op, shapes, attributes
    ("MatMul", (64, 96), (96, 128), {}),
    ("MatMul", (300, 77), (77, 513), {}),
    ("MatMul", (77, 300), (77, 513), dict(transpose_a=True)),
    ("MatMul", (513, 301), (257, 301), dict(transpose_b=True)),
    ("MatMul", (301, 200), (400, 301), dict(transpose_a=True, transpose_b=True)),
    ("MatMul", (8, 1024), (1024, 4096), {}),
    ("MatMul", (600, 700), (700, 500), {}),
    ("MatMul", (100, 2100), (90, 2100), dict(transpose_b=True)),  # deep
    ("MatMul", (2500, 33), (2500, 129), dict(transpose_a=True)),
    ("BatchMatMulV2", (3, 1, 40, 50), (2, 50, 60), {}),
    ("BatchMatMulV2", (3, 1, 50, 40), (2, 60, 50), dict(adj_x=True, adj_y=True)),
    ("BatchMatMulV2", (7, 90, 80), (80, 70), {}),
    ("BatchMatMul", (2, 400, 300), (2, 300, 200), {}),
    ("BatchMatMulV3", (4, 30, 50), (4, 50, 60), dict(Tout=tw.float32)),
]


@pytest.mark.parametrize("op, a, b, attrs", PRODUCTS)
def test_products_are_the_same_as_without_the_pack(packed, plain, op, a, b, attrs):
    a, b = numbers(*a), numbers(*b)
    found, kernel = step(packed, op, [a, b], {}, plan=True, **attrs)
    assert kernel.endswith("priority 10")
    expected, kernel = step(plain, op, [a, b], {}, plan=True, **attrs)
    assert "priority" not in kernel
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-5 * np.sqrt(a.shape[-1]))
    for options in SESSIONS:
        np.testing.assert_array_equal(step(packed, op, [a, b], options, **attrs), found)


IMAGES = [  # N, height, width, in, out, window, attributes
    (1, 20, 24, 16, 32, (3, 3), {}),
    (5, 13, 17, 24, 40, (3, 2), dict(strides=[1, 2, 1, 1], padding="SAME")),
    (16, 15, 15, 16, 16, (3, 3), dict(strides=[1, 2, 2, 1], padding="SAME")),
    (3, 19, 21, 32, 17, (5, 3), dict(dilations=[1, 2, 3, 1])),
    (2, 64, 64, 3, 64, (7, 7), dict(strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 3, 2, 4, 1, 0, 0])),
    (4, 28, 28, 64, 32, (1, 1), dict(strides=[1, 2, 2, 1])),
    (1, 112, 112, 32, 32, (3, 3), dict(padding="SAME")),
    (40, 14, 14, 48, 64, (3, 3), dict(padding="SAME")),
    (4, 7, 7, 80, 144, (3, 3), dict(padding="SAME")),  # few points: the work is split by output channels
    (3, 9, 8, 144, 160, (3, 2), dict(strides=[1, 2, 1, 1])),
    (2, 8, 8, 130, 133, (1, 1), {}),
    (2, 9, 9, 16, 16, (3, 3), dict(data_format="NCHW")),  # the pack's own kernel computes it
]


@pytest.mark.parametrize("n, height, width, inputs, outputs, window, attrs", IMAGES)
def test_convolutions_and_gradients_are_the_same_as_without_the_pack(packed, plain, n, height, width, inputs, outputs, window, attrs):
    attrs = dict(dict(strides=[1, 1, 1, 1], padding="VALID"), **attrs)
    first = attrs.get("data_format") == "NCHW"
    x, w = numbers(*((n, inputs, height, width) if first else (n, height, width, inputs))), numbers(*window, inputs, outputs)
    y, kernel = step(packed, "Conv2D", [x, w], {}, plan=True, **attrs)
    assert kernel.endswith("priority 10")
    dy = numbers(*y.shape)
    for op, given in (("Conv2D", [x, w]), ("Conv2DBackpropInput", [list(x.shape), w, dy]),
                      ("Conv2DBackpropFilter", [x, list(w.shape), dy])):
        found, expected = (step(runtime, op, given, {}, **attrs) for runtime in (packed, plain))
        # The gradient of a kernel sums over all points. Without AVX-512, oneDNN adds them up one by one: 4e-6 off float64 for 12,544 points.
        terms = y.size // outputs if op == "Conv2DBackpropFilter" else 400
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * max(20, terms ** 0.5) * abs(expected).max())
        for options in SESSIONS:
            np.testing.assert_array_equal(step(packed, op, given, options, **attrs), found)


def small(y):
    return tw.ops.Cast(y, DstT=tw.bfloat16)


def small_product(turned):
    return lambda a, b: tw.ops.Cast(tw.ops.MatMul(small(a), small(b), transpose_a=turned, transpose_b=turned), DstT=tw.float32)


def small_convolutions(x, w, dy):
    attrs = dict(strides=[1, 1, 1, 1], padding="SAME")
    x, w, dy = small(x), small(w), small(dy)
    sizes = [tw.constant(np.array(v.shape, np.int32)) for v in (x, w)]
    results = [tw.ops.Conv2D(x, w, **attrs), tw.ops.Conv2DBackpropInput(sizes[0], w, dy, **attrs),
               tw.ops.Conv2DBackpropFilter(x, sizes[1], dy, **attrs)]
    return tw.ops.ConcatV2([tw.ops.Reshape(tw.ops.Cast(y, DstT=tw.float32), tw.constant(np.array([-1], np.int32))) for y in results],
                           tw.constant(np.int32(0)))


@pytest.mark.parametrize("build, shapes", [
    (small_product(False), [(300, 200), (200, 500)]), (small_product(True), [(97, 130), (70, 97)]),
    (small_convolutions, [(6, 12, 12, 32), (3, 3, 32, 48), (6, 12, 12, 48)]),
    (small_convolutions, [(3, 7, 7, 144), (3, 3, 144, 160), (3, 7, 7, 160)]),
    (small_convolutions, [(2, 20, 20, 17), (2, 3, 17, 40), (2, 20, 20, 40)])])
def test_bfloat16_sums_in_float(packed, plain, build, shapes):
    """Uses integers, so that sums are exact and only the result is rounded."""
    feeds = [RNG.integers(-8, 9, shape).astype(np.float32) for shape in shapes]
    found = run_fused(packed, build, feeds)
    np.testing.assert_array_equal(found, run_fused(plain, build, feeds))
    for options in SESSIONS:
        np.testing.assert_array_equal(run_fused(packed, build, feeds, **options), found)


def run_fused(runtime, build, feeds, plan=False, **options):
    """Runs build(placeholders...). Returns its result, and the sets that the pack's compiler took and left."""
    graph = tw.Graph(runtime)
    with graph:
        values = [tw.placeholder(tw.float32, x.shape) for x in feeds]
        y = build(*values)
    session = tw.Session(graph, **options)
    given = dict(zip(values, feeds))
    result = session.run(y, given)
    if not plan:
        return result
    notes = session.plan(y, {v: x.shape for v, x in given.items()})
    mine = [len(c["nodes"]) for c in notes["claims"] if c["plugin"] == PACK and not c.get("refused")]
    return result, mine, [c["why"] for c in notes["left"] if c["plugin"] == PACK]


def dense(activation):
    def build(a, b, bias):
        y = tw.ops.BiasAdd(tw.ops.MatMul(a, b), bias)
        return getattr(tw.ops, activation)(y) if activation else y
    return build


def convolution(activation, constant=None):
    def build(x, bias, w=None):
        filters = tw.constant(constant) if w is None else w
        y = tw.ops.BiasAdd(tw.ops.Conv2D(x, filters, strides=[1, 1, 1, 1], padding="SAME"), bias)
        return getattr(tw.ops, activation)(y) if activation else y
    return build


def check_fused(packed, build, feeds, nodes):
    single = run_fused(packed, build, feeds, compilers="off")
    found, sets, _ = run_fused(packed, build, feeds, plan=True, compilers="require")
    assert sets == [nodes]
    np.testing.assert_array_equal(found, single)
    for options in SESSIONS:
        np.testing.assert_array_equal(run_fused(packed, build, feeds, **options), single)


@pytest.mark.parametrize("activation", [None, "Relu", "Relu6", "Elu", "Tanh", "Sigmoid"])
def test_bias_and_activation_are_computed_with_the_product_bit_for_bit(packed, activation):
    check_fused(packed, dense(activation), [numbers(300, 200), numbers(200, 500), numbers(500)], 3 if activation else 2)
    x, bias, w = numbers(9, 14, 15, 16), numbers(40), numbers(3, 3, 16, 40)
    x[0, 0, 0, 0] = np.nan
    check_fused(packed, convolution(activation), [x, bias, w], 3 if activation else 2)
    check_fused(packed, convolution(activation, w), [x, bias], 3 if activation else 2)
    x, bias, w = numbers(2, 6, 7, 48), numbers(208), numbers(3, 3, 48, 208)  # split by channels
    check_fused(packed, convolution(activation), [x, bias, w], 3 if activation else 2)
    check_fused(packed, convolution(activation, w), [x, bias], 3 if activation else 2)


def test_a_convolution_alone_is_taken_if_its_filter_never_changes(packed):
    x, w = numbers(3, 20, 20, 16), numbers(3, 3, 16, 32)

    def alone(x):
        return tw.ops.Conv2D(x, tw.constant(w), strides=[1, 1, 1, 1], padding="SAME")

    check_fused(packed, alone, [x], 1)
    _, sets, left = run_fused(packed, lambda x, w: tw.ops.Conv2D(x, w, strides=[1, 1, 1, 1], padding="SAME"), [x, w], plan=True)
    assert sets == [] and "its filter is not constant" in left[0]


def test_what_somebody_else_reads_is_not_fused(packed):
    def build(a, b, bias):
        y = tw.ops.MatMul(a, b)
        return tw.ops.AddV2(tw.ops.BiasAdd(y, bias), y)

    _, sets, left = run_fused(packed, build, [numbers(300, 200), numbers(200, 500), numbers(500)], plan=True)
    assert sets == [] and left == ["no bias or activation follows that it alone is for"]


@pytest.mark.parametrize("fuse, nodes", [("none", []), ("bias", [2]), ("activation,filter", []), ("bias,activation", [3])])
def test_each_fusion_can_be_left_out(fuse, nodes):
    runtime = tw.Runtime(**setting(least_work=1, fuse=fuse))
    assert run_fused(runtime, dense("Relu"), [numbers(300, 200), numbers(200, 500), numbers(500)], plan=True)[1] == nodes


def test_small_products_are_left_with_a_reason():
    _, sets, left = run_fused(tw.Runtime(), dense("Relu"), [numbers(30, 20), numbers(20, 50), numbers(50)], plan=True)
    assert sets == [] and left == ["too small, or of sizes or a layout that the library is not faster at"]


PROGRAM = """
import os, numpy as np, thalweg as tw
tw.log.set("stderr", "warning")
def mapped():
    return "libdnnl" in open("/proc/self/maps").read()
def product(n):
    with tw.Graph() as graph:
        a = tw.placeholder(tw.float32, (n, n))
        y = tw.ops.MatMul(a, a)
    return tw.Session(graph).run(y, {a: np.ones((n, n), np.float32)})
print("loaded", [p.state for p in tw.Runtime.default().plugins() if p.id == "org.thalweg.onednn"])
assert not mapped()
product(16)
print("small", mapped())
with tw.Graph() as graph:
    x, w = tw.placeholder(tw.float32, (4, 30, 30, 64)), tw.placeholder(tw.float32, (3, 3, 64, 64))
    y = tw.ops.Conv2D(x, w, strides=[1, 1, 1, 1], padding="VALID")
y = tw.Session(graph).run(y, {x: np.ones((4, 30, 30, 64), np.float32), w: np.ones((3, 3, 64, 64), np.float32)})
assert (y == 576).all()
assert (product(512) == 512).all()
print("large", mapped())
print("threads", len(os.listdir("/proc/self/task")))
"""


def program(options="", **environment):
    done = subprocess.run([sys.executable, "-B", "-c", PROGRAM], capture_output=True, text=True,
                          env={**os.environ, "THALWEG_OPTIONS": f"threads=4;{options}", **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_the_library_is_opened_when_it_is_first_needed():
    said, _ = program()
    assert "loaded ['known']" in said and "small False" in said and "large True" in said


def test_the_library_really_computes():
    said, _ = program(DNNL_VERBOSE="1")
    assert said.count("verbose,exec,cpu,convolution,") > 1


def test_the_library_has_no_threads_of_its_own():
    def threads(*options):
        return [line for line in program(*options)[0].splitlines() if line.startswith("threads")]

    assert threads() == threads(f"disabled_plugins={PACK}")


def test_without_the_pack_everything_works():
    said, _ = program(f"disabled_plugins={PACK}")
    assert "large False" in said


def test_without_the_library_the_pack_is_left_out_with_a_reason(tmp_path):
    tmp_path.chmod(0o700)
    plugins = tw.Runtime(plugin_cache=tmp_path, **setting(library="/nowhere/libdnnl.so.2")).plugins()
    found = next(p for p in plugins if p.path.endswith("libonednn.so"))
    assert found.state == "failed"
    assert "setting 'library' is '/nowhere/libdnnl.so.2', which is not there; name the file of oneDNN 2" in found.reason


def test_a_library_that_has_gone_is_done_without():
    assert "large False" in program(f"plugin.{PACK}.library=/nowhere/libdnnl.so.2")[0]


def test_a_library_that_is_none_is_told_and_done_without(tmp_path):
    (tmp_path / "libdnnl.so.2").write_text("not a library")
    said, errors = program(f"plugin.{PACK}.library={tmp_path}/libdnnl.so.2")
    assert "large False" in said and errors.count("oneDNN cannot be used: ") == 1


@pytest.mark.parametrize("key, value, why", [("least_work", "much", "is a number of multiply-adds"),
                                             ("fuse", "bias,relu", "takes all, none")])
def test_settings_that_make_no_sense_are_refused(tmp_path, key, value, why):
    tmp_path.chmod(0o700)
    plugins = tw.Runtime(plugin_cache=tmp_path, **setting(**{key: value})).plugins()
    found = next(p for p in plugins if p.path.endswith("libonednn.so"))
    assert f"setting '{key}' is '{value}'; it {why}" in found.reason
