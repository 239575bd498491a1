"""Runs programs on the software accelerator while one call fails: an allocation, a copy, the launch of a kernel, a kernel that fails late,
the device itself. For each call in turn, the run ends with exactly that error, which names its place; the next run of the session is right
(unless the device is lost); closing the session does not block for ever; other devices go on. Needs the plugin in THALWEG_OPTIONS."""
import sys

import numpy as np

import cases
import thalweg
from loops import loop
from thalweg import ops
from tw import runtime

X = np.array([[1, 2], [3, 4]], np.float32)
FAULTS = {"fail_allocate": ("RESOURCE_EXHAUSTED", "this allocation was to fail"), "fail_copy": ("INTERNAL", "this copy was to fail"),
          "fail_transfer": ("INTERNAL", "was to fail while it ran (fail_transfer)"), "fail_enqueue": ("INTERNAL", "was not to be enqueued"),
          "fail_kernel": ("INTERNAL", "was to fail while it ran (fail_kernel)"), "lose_after": ("UNAVAILABLE", "lost")}


def elementwise(x):
    y = x
    for _ in range(4):
        y = ops.square(-(y * np.float32(0.5))) + x
    return ops.exp(-y)


def of_elementwise(x):
    y = x
    for _ in range(4):
        y = (y * 0.5)**2 + x
    return np.exp(-y)


def products(x):
    return ops.relu(ops.mat_mul(ops.mat_mul(x, -x), x)) + ops.sqrt(x)


def of_products(x):
    return np.maximum(x @ -x @ x, 0) + np.sqrt(x)


def looped(x):
    return loop(x, lambda y: ops.less(ops.sum(y, np.array([0, 1], np.int32)), np.float32(100)), lambda y: y + y * np.float32(0.5))


def of_looped(x):
    while x.sum() < 100:
        x = x + x * np.float32(0.5)
    return x


def called(x):
    """Builds a loop of functions and its gradient: the values of each iteration are stored in lists on the device."""
    y = thalweg.while_loop(lambda k, y: k < 3, lambda k, y: [k + 1, y + y * y * np.float32(0.0625)], [0, x])[1]
    return thalweg.gradients(y, [x])[0]


def of_called(x):
    slope = np.ones_like(x)
    for _ in range(3):
        slope, x = slope * (1 + x * 0.125), x + x * x * 0.0625
    return slope


def branched(x):
    last, first = ops.switch(x, ops.less(ops.sum(x, np.array([0, 1], np.int32)), np.float32(100)))
    return ops.merge([ops.square(last), -first]).output


def trained(x):
    """Builds a variable that takes a step towards x. A run changes the variable, so each run starts from its current value."""
    v = thalweg.Variable(np.zeros((2, 2), np.float32), name="v")
    with thalweg.control_dependencies([ops.assign_variable_op(v.handle, x * np.float32(0))]):
        step = ops.resource_apply_gradient_descent(v.handle, np.float32(0.5), ops.mat_mul(x, x) - x)
    with thalweg.control_dependencies([step]):
        return ops.read_variable_op(v.handle, dtype="float32")


PROGRAMS = {"elementwise": (elementwise, of_elementwise), "products": (products, of_products), "loop": (looped, of_looped),
            "loop of functions": (called, of_called), "branch": (branched, lambda x: -x),
            "training": (trained, lambda x: -0.5 * (x @ x - x))}


def attempt_with(session, y, feeds):
    """Returns the value of y, or the error."""
    try:
        return session.run(y, feeds)
    except thalweg.Error as error:
        return error


def attempt(session, y, x):
    return attempt_with(session, y, {x: X})


def check(name, fault, n, engine):
    """Lets the nth call of that kind fail. Returns whether the run reached it."""
    program, reference = PROGRAMS[name]
    where = f"{name}, {fault}={n}, {engine}"
    settings = {f"plugin.org.thalweg.fake.{fault}": n, "plugin.org.thalweg.fake.delay_us": 20}
    if fault == "fail_allocate":  # a failed allocation is retried after pools have freed their memory
        settings["plugin.org.thalweg.fake.fail_times"] = 2
    code, text = FAULTS[fault]
    with thalweg.Graph(runtime(threads=2, **settings)) as graph:
        x = thalweg.placeholder("float32", [2, 2], name="x")
        with thalweg.device("FAKE:0"):
            y = program(x)
        with thalweg.device("FAKE:1"):
            other = -x
    session = thalweg.Session(graph, fallback="allow", disable_pass="fold", engine=engine)
    got = attempt(session, y, x)
    failed = isinstance(got, thalweg.Error)
    if failed:
        cases.holds(where, got.code_name == code and text in str(got), f"{got.code_name}: {got}")
        cases.holds(where + ": where it was is told", "FAKE:0" in str(got) or "fake-0" in str(got), got)
        got = attempt(session, y, x)
    if fault == "lose_after" and failed:
        cases.holds(where + ": it stays lost", isinstance(got, thalweg.Error) and got.code_name == code and text in str(got), got)
    else:
        cases.equal(where, got if not isinstance(got, thalweg.Error) else np.array(str(got)), reference(X), 1e-5)
    if failed:
        cases.equal(where + ": the other device goes on", session.run(other, {x: X}), -X)
    session.close()
    return failed


def several_devices():
    """Loops and branches whose nodes are on two devices and the CPU, for each way of copying between them."""
    for settings in ({}, {"peers": 0}, {"without": "wait"}, {"without": "streams"}, {"without": "peer,pinned"}, {"queue_threads": 1}):
        fake = {f"plugin.org.thalweg.fake.{key}": value for key, value in {"delay_us": 50, **settings}.items()}
        with thalweg.Graph(runtime(threads=2, **fake)) as graph:
            x, n = thalweg.placeholder("float32", [None], name="x"), thalweg.placeholder("int32", [], name="n")

            def body(y, k, outside, _):
                with thalweg.device("FAKE:0"):
                    y = y * y + outside
                with thalweg.device("FAKE:1"):
                    y = y - outside * np.float32(0.5)
                with thalweg.device("CPU:0"):
                    y = ops.sqrt(ops.abs(y))
                with thalweg.device("FAKE:1"):
                    left, right = ops.switch(y, ops.less(ops.mod(k, np.int32(2)), np.int32(1)))
                    y = ops.merge([-left, ops.square(right)]).output
                return [y, k + np.int32(1)]

            with thalweg.device("FAKE:0"):
                outside = ops.square(x)
            last = loop([x, ops.identity(np.int32(0))], lambda y, k, outside, n: ops.less(k, n), body, [outside, n])[0]
        wanted = X[0]
        for k in range(7):
            wanted = np.sqrt(abs(wanted * wanted + X[0] * X[0] * np.float32(0.5)))
            wanted = -wanted if k % 2 else wanted * wanted
        for optimize in ("true", "false"):
            with thalweg.Session(graph, optimize=optimize, fallback="allow") as session:
                for _ in range(3):
                    cases.equal(f"two devices in a loop, {settings}", session.run(last, {x: X[0], n: 7}), wanted, 1e-5)


def small_memory():
    """A loop whose values together are many times the device's memory; and one with a single value that is too large."""
    with thalweg.Graph(runtime(threads=2, **{"plugin.org.thalweg.fake.memory": "4M", "plugin.org.thalweg.fake.delay_us": 20})) as graph:
        x = thalweg.placeholder("float32", [None], name="x")
        with thalweg.device("FAKE:0"):
            first = -x
            last = loop([ops.identity(x), ops.identity(np.float32(0))], lambda y, k: ops.less(k, np.float32(100)),
                        lambda y, k: [y * np.float32(0.5) + y * np.float32(0.25), k + np.float32(1)])[0]
    with thalweg.Session(graph, fallback="allow", disable_pass="fold") as session:
        few = np.full(100000, 3, np.float32)
        wanted = np.float32(3)
        for _ in range(100):
            wanted = wanted * np.float32(0.5) + wanted * np.float32(0.25)
        cases.equal("a loop in little memory", session.run(last, {x: few}), np.full(100000, wanted))
        for y in (first, last):
            got = attempt_with(session, y, {x: np.zeros(2000000, np.float32)})
            cases.holds("what does not fit is told", isinstance(got, thalweg.Error) and got.code_name == "RESOURCE_EXHAUSTED", got)
            cases.holds("with device and size", all(t in str(got) for t in ("FAKE:0", "8000000 bytes", "4194304")), got)
        cases.equal("and the session goes on", session.run(first, {x: few}), -few)


if __name__ == "__main__":
    several_devices()
    small_memory()
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for name in PROGRAMS:
        for fault in FAULTS:
            failures, n, goes_on = 0, 1, True
            while n <= most and goes_on:
                failed = check(name, fault, n, ("fixed", "counted")[n % 2])
                failures += failed
                goes_on = failed or n < 8  # an allocation may succeed after queues have freed memory
                n += 1 + n // 8
            cases.holds(f"{name}, {fault}: some calls failed", failures > 0)
    cases.finish()
