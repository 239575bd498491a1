"""Cases of ops that may fail, and of the state after the failure. Cases of one op each run in a process of their own, so that a crash, and
a case that never ends, is a failure with a name, and memory is limited."""
import dataclasses
import os
import resource
import signal
import subprocess
import sys
import zlib

import numpy as np

import called
import cases
import kept
import thalweg
import tw

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
SECONDS, PATIENCE = (60, 120) if SANITIZED else (10, 60)  # CPU and wall-clock seconds for one case; a longer one never ends
WAITS = {op for op in tw.ops() if op in kept.OPS or op in called.OPS}  # ops that may wait for other ops, or loop
SOON, LATE = 0.2 if SANITIZED else 0.05, 1  # seconds after which such an op is taken to wait: at first, and for certainty
MEMORY = 512 << 20  # bytes of address space beyond those at the start of the process, so that allocations of hostile sizes fail
LARGE = 1 << 20  # bytes
LOW, HIGH = -2**63, 2**63 - 1
# The options of sessions: an op that is fed runs unoptimized. The sanitizer ends a process whose `operator new` fails, so a memory account
# must reject the allocation first.
OPTIONS = {"fed": dict(optimize="false")}
LIMITED = dict(memory_limit=str(MEMORY)) if SANITIZED else {}


def case(text):
    print(f"CASE    {text}", flush=True)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(PATIENCE)


def shown(x):
    x = np.asarray(x)
    return x.tolist() if 0 < x.size < 300 else x.shape


def accepts(op, inputs, wanted, **attrs):
    """A case that does not fail."""
    case(f"{op} {[shown(x) for x in inputs]} {attrs}")
    cases.expect(op, inputs, [wanted], **attrs)


@dataclasses.dataclass
class Spoilt(tw.Variable):
    """A variable that is "destroyed" when the op runs, or whose handle is "not fed"."""
    state: str = "destroyed"


def state_of(x):
    return x.state if hasattr(x, "state") else "sound" if x.set else "uninitialised"


class Attempt:
    """One op that should fail, and beside it one that should not. how: one of tw.WAYS. timeout: seconds for an op that may wait; None:
    SOON."""

    def __init__(self, op, inputs, how, attrs, timeout=None):
        self.graph, self.session, self.feeds, self.how, self.op = tw.Graph(), None, {}, how, op
        self.timeout, self.attrs = (timeout or SOON) if op in WAITS else None, kept.named(op, attrs) if op in kept.OPS else attrs
        self.variables, self.start, self.spoil = {}, [], []  # `start`, then `spoil`, run before the op
        self.before = kept.laid_down(self.graph, op, self.attrs)  # operations that run in the step of the op
        self.end = []
        if op in called.OPS:
            called.add_functions(self.graph)
        self.x = self.graph.placeholder(np.float32)
        self.sound = self.graph.op("Neg", self.x)
        values = [self.value(x, k in tw.referred(op)) for k, x in enumerate(inputs)]
        self.make = lambda: self.graph.add(op, *values, name="op", after=self.before, **self.attrs)

    def value(self, x, reference):
        if isinstance(x, tw.List):
            return self.graph.list(x, self.how, self.feeds)
        if isinstance(x, kept.Kept):
            return self.handle(x, reference)
        if not isinstance(x, tw.Variable):
            return self.graph.enter(np.asarray(x), self.how, self.feeds)
        if state_of(x) == "not fed":
            return self.graph.placeholder(tw.thalweg.as_dtype("resource"))
        if id(x) not in self.variables:  # several inputs may be one variable
            self.variables[id(x)], start, handle = self.graph.variable(x, self.how, reference)
            self.start += start
            self.end.append(self.graph.add("DestroyResourceOp", handle, ignore_lookup_error=True))
            if state_of(x) == "destroyed":
                self.spoil.append(self.end[-1])
        return self.variables[id(x)]

    def handle(self, x, reference):
        value, steps, end = x.enter(self.graph, reference)
        self.before += steps
        self.end.append(end)
        return value

    def __call__(self, read=lambda tensor: None):
        operation = self.make()
        if self.op in kept.MADE and not operation.inputs:
            self.end.append(self.graph.add("DestroyResourceOp", operation.outputs[0], ignore_lookup_error=True))
        outputs = [] if self.op in kept.REFERENCES else operation.outputs
        outputs = [self.copied(y) for y in outputs] if self.how == "computed" else outputs
        self.session = self.graph.session(**OPTIONS.get(self.how, {}), **LIMITED)
        for targets in (self.start, self.spoil):
            self.session.run([], targets=targets)
        return self.session.step(outputs, self.feeds, [] if outputs else [operation], read, self.timeout)(self.feeds.values())

    def copied(self, y):
        """Copies y, so that the fetch has memory of its own and no op computes in place."""
        if y.dtype.name in ("resource", "variant") or self.op in ("Variable", "VariableV2", "RefSelect"):
            return y
        yes = self.graph.placeholder(np.bool_)
        self.feeds[yes] = np.bool_(True)
        return self.graph.op("SelectV2", yes, y, y)

    def results(self):
        return self(content)

    def close(self):
        """Destroys the variables and other resources, which would outlive the attempt."""
        try:
            if self.end:
                (self.session or self.graph.session()).run([], targets=self.end)
        except tw.Error:
            if self.op not in kept.MADE:  # a resource that could not be made need not be destroyed
                raise

    def goes_on(self):
        session = self.session or self.graph.session()
        return np.array_equal(session.run([self.sound], {self.x: np.float32([1, -2])})[0], [-1, 2])


def content(tensor):
    """Returns the content of an output. An output without elements may have axes too long for NumPy, and a handle has no content."""
    if tensor.nbytes == 0 or tensor.dtype.name in ("resource", "variant"):
        return tensor.dtype.name, tensor.shape, b""
    array = tw.to_array(tensor)
    if array.nbytes > LARGE:  # a comparison must not use up the remaining memory
        return tensor.dtype.name, tensor.shape, zlib.crc32(array)
    return tensor.dtype.name, tensor.shape, array.tolist() if array.dtype.kind == "O" else array.tobytes()


# ---- The process ----


def limit():
    """Limits the memory and time of the cases from here on."""
    if not SANITIZED:
        tw.run("Neg", [np.zeros(1 << 16, np.float32)])  # makes the runtime's threads allocate their stacks
        thalweg.devices()  # and the drivers of devices, which end the process if they get no thread
        pages = int(open("/proc/self/statm").read().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def alone(script, *arguments):
    """Runs `script worker ARGUMENTS`, prints the failures, or the last attempt if that process died, and exits."""
    environment = dict(os.environ)
    if SANITIZED:  # the sanitizer reserves far more addresses than it uses
        environment["ASAN_OPTIONS"] += f":allocator_may_return_null=1:max_allocation_size_mb={MEMORY >> 20}"
    child = subprocess.Popen([sys.executable, "-B", script, "worker", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, env=environment)
    last = line = ""
    for line in child.stdout:
        if line.startswith("CASE "):
            last = line
        else:
            print(line, end="")
    code = child.wait()
    if "cases hold" not in line:
        print(f"FAILED  the process ended with {code} after: {last}")
    sys.exit(code != 0)
