"""Checks of a GPU beside the op suite, through the Python binding: `checks.py NAME [small]`. `small`: sizes for the stub driver.
Exit status: 0 the check holds, 1 it fails and prints what it found."""
import sys
import threading
import time

import numpy as np
import thalweg as tw

SMALL = "small" in sys.argv[2:]
GPU = "CUDA:0"
ON_GPU = {"device": GPU, "fallback": "allow"}


def expect(holds, what):
    print(("holds   " if holds else "FAILED  ") + what)
    if not holds:
        sys.exit(1)


class Net:
    """A net of two layers with state, its training step, and feeds."""

    def __init__(self, rows=64, wide=256):
        rng = np.random.default_rng(1)
        self.feeds = rng.standard_normal((rows, 32), np.float32), rng.standard_normal((rows, 1), np.float32)
        self.graph = tw.Graph()
        with self.graph:
            self.x, self.target = tw.placeholder("float32", [rows, 32]), tw.placeholder("float32", [rows, 1])
            self.weights = [tw.Variable(0.1 * rng.standard_normal(shape).astype(np.float32)) for shape in ((32, wide), (wide, wide), (wide, 1))]
            h = tw.ops.tanh(self.x @ self.weights[0])
            h = tw.ops.tanh(h @ self.weights[1])
            self.loss = tw.ops.square(h @ self.weights[2] - self.target).mean()
            self.step = tw.train.Adam(0.001).minimize(self.loss)
            self.init = self.graph.initializer()

    def train(self, steps, **options):
        """Trains; returns losses and weights."""
        with tw.Session(self.graph, **{**ON_GPU, **options}) as s:
            s.run(self.init)
            losses = [s.run([self.loss, self.step], {self.x: self.feeds[0], self.target: self.feeds[1]})[0] for _ in range(steps)]
            return losses, s.run(self.weights)


def memory_used():
    return next(d for d in tw.devices() if d.name.endswith(GPU)).statistics["memory_used"]


def capture():
    """Steps that are recorded and steps that are not leave the same bits."""
    steps = 12 if SMALL else 200
    on, off = Net(16, 32).train(steps, capture=True), Net(16, 32).train(steps, capture=False)
    expect(on[0] == off[0], "losses are the same with and without recording")
    expect(all((a == b).all() for a, b in zip(on[1], off[1])), "so are the weights")
    expect(on[0][-1] < on[0][0], f"the loss falls: {on[0][0]:.4f} to {on[0][-1]:.4f}")


def like_the_cpu():
    """A net learns the same on the GPU as on the CPU."""
    there, here = Net().train(20), Net().train(20, device="CPU:0")
    worst = max(abs(a - b) / abs(b) for a, b in zip(there[0], here[0]))
    expect(worst < 1e-3, f"losses differ by {worst:.1e} of theirs at most")


def memory_cap():
    """The device's memory limit holds: a step beyond it fails with an error that names it, a step that fits runs. Needs the option
    memory_limit.CUDA:0=64M."""
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None])
        y = tw.ops.neg(x)
    with tw.Session(g, **ON_GPU) as s:
        try:
            s.run(y, {x: np.ones(40 << 20, np.float32)})
            expect(False, "160 MB do not fit into 64 MB")
        except tw.ResourceExhaustedError as error:
            expect("67108864" in str(error), f"the error names the limit: {str(error)[:160]}")
        expect((s.run(y, {x: np.ones(1000, np.float32)}) == -1).all(), "what fits runs")


def out_of_memory():
    """A request for more memory than the device has fails; later steps run, and all memory is free again."""
    have = next(d for d in tw.devices() if d.name.endswith(GPU)).memory
    with tw.Graph() as g:
        n = tw.placeholder("int32", [])
        ones = tw.ops.fill(n.reshape(1), np.float32(1))
        y = ones
        for _ in range(4):
            y = tw.ops.exp(tw.ops.neg(y)) + ones
        total = y.sum()
    with tw.Session(g, **ON_GPU) as s:
        s.run(total, {n: 1000})
        before = memory_used()
        for _ in range(3):
            try:
                s.run(total, {n: min(have // 8, 2**31 - 1)})
                expect(have // 8 > 2**31 - 1, "several arrays of half the memory do not fit")
            except tw.ResourceExhaustedError:
                pass
            expect(np.isfinite(s.run(total, {n: 1000})), "a small step runs after it")
    tw.Runtime.default().give_memory_back()
    print(f"memory used: {before} before, {memory_used()} after")
    expect(memory_used() <= before + (1 << 20), "the memory came back")


def overlap():
    """Copies run beside kernels: a step of both takes less than the two alone."""
    n, k = (64, 4) if SMALL else (4096, 8)
    with tw.Graph() as g:
        w = tw.Variable(np.full((n, n), 1 / n, np.float32))
        feeds = [tw.placeholder("float32", [n, n]) for _ in range(k)]
        y = w + np.float32(0)
        for _ in range(k):
            y = y @ w
        work, moved = y.sum(), tw.ops.add_n([tw.ops.neg(f) for f in feeds]).sum()
        init = g.initializer()
    arrays = {f: np.ones((n, n), np.float32) for f in feeds}

    def seconds(session, *what, **more):
        for _ in range(3):
            session.run(list(what), more.get("feeds"))
        times = []
        for _ in range(5):
            began = time.perf_counter()
            session.run(list(what), more.get("feeds"))
            times.append(time.perf_counter() - began)
        return sorted(times)[2]

    with tw.Session(g, **ON_GPU) as s:
        s.run(init)
        kernels, copies, both = seconds(s, work), seconds(s, moved, feeds=arrays), seconds(s, work, moved, feeds=arrays)
    print(f"kernels {kernels * 1e3:.2f} ms, copies {copies * 1e3:.2f} ms, both {both * 1e3:.2f} ms")
    expect(SMALL or both < 0.9 * (kernels + copies), "both together take less than 0.9 of one after the other")


def failures():
    """Failures of a step are reported, and the device goes on: rejected indices, deadlines, cancelled steps, closed sessions."""
    net = Net(16, 32)
    with tw.Graph() as g:
        x, i = tw.placeholder("float32", [10]), tw.placeholder("int32", [None])
        picked = tw.ops.gather_v2(x, i, np.int32(0))
    with tw.Session(g, **ON_GPU) as s:
        for wrong in (10, -1):
            try:
                s.run(picked, {x: np.arange(10, dtype=np.float32), i: [wrong]})
                expect(False, f"index {wrong} is refused")
            except tw.InvalidArgumentError as error:
                expect(str(wrong) in str(error), "the error names the index")
        expect(s.run(picked, {x: np.arange(10, dtype=np.float32), i: [3]})[0] == 3, "a right one is answered")
    with tw.Session(net.graph, **ON_GPU) as s:
        s.run(net.init)
        feeds = {net.x: net.feeds[0], net.target: net.feeds[1]}
        token = tw.CancelToken()
        token.cancel()
        for error, more in ((tw.CancelledError, {"cancel": token}), (tw.DeadlineExceededError, {"timeout": 1e-9})):
            try:
                s.run([net.loss, net.step], feeds, **more)
                expect(False, f"the step ends with {error.__name__}")
            except error:
                pass
            expect(np.isfinite(s.run([net.loss, net.step], feeds)[0]), f"a step runs after {error.__name__}")
        futures = [s.run_async([net.loss, net.step], feeds) for _ in range(8)]
    expect(all(f.done() for f in futures), "a session that is closed waits for what runs")


def two_sessions():
    """Two sessions in two threads on one device have the same results as alone."""
    steps = 10 if SMALL else 100
    alone = Net(16, 32).train(steps)
    nets, found = [Net(16, 32), Net(16, 32)], [None, None]

    def work(k):
        found[k] = nets[k].train(steps, container=f"session {k}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expect(all(f and f[0] == alone[0] for f in found), "both learn as one alone does")


def trace():
    """The trace of a step has the times at which its kernels ran on the device."""
    net = Net(16, 32)
    with tw.Session(net.graph, **ON_GPU) as s:
        s.run(net.init)
        stats = tw.StepStats()
        s.run([net.loss, net.step], {net.x: net.feeds[0], net.target: net.feeds[1]}, stats=stats)
    expect("compute" in stats.to_json(), "the trace has rows of the device's queues")


def loss_scale():
    """Matrix products in half precision with a scaled loss: a step that overflows changes only the scale, on the GPU as on the CPU."""
    steps = 12 if SMALL else 100

    def trained(**options):
        rng = np.random.default_rng(1)
        with tw.Graph() as g:
            x, w = tw.placeholder("float32", [64, 32]), tw.Variable(rng.standard_normal((32, 64)).astype(np.float32))
            loss = tw.ops.square((x.astype("half") @ w.astype("half")).astype("float32")).mean()
            scaled = tw.train.LossScale(tw.train.Adam(0.01), start=256, interval=3)
            step, init = scaled.minimize(loss), g.initializer()
        with tw.Session(g, **options) as s:
            s.run(init)
            for k in range(steps):
                feed = rng.standard_normal((64, 32)).astype(np.float32)
                if k % 5 == 3:
                    feed[0, 0] = np.inf
                s.run(step, {x: feed})
            return s.run([w, scaled.scale, scaled.good_steps])

    quick = {"compilers": "off"} if SMALL else {}
    (there, *its_scale), (here, *scale) = trained(**ON_GPU, **quick), trained(container="on the CPU")
    expect(its_scale == scale and scale[0] != 256, f"the scale is {its_scale}, on the CPU {scale}")
    expect(np.allclose(there, here, atol=2e-3), f"weights differ by {np.abs(there - here).max():.1e} at most")


def dlpack():
    """We and PyTorch, if this Python has it, read each other's memory in place, in the order of both streams."""
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None])
        with tw.device(GPU):
            y = x * x
    with tw.Session(g, **ON_GPU) as s:
        square = s.callable(y, [x], feed_devices=[GPU], fetch_devices=[GPU])
        lent = tw.Tensor(np.arange(100, dtype=np.float32)).to_device(GPU)
        expect(lent.__dlpack_device__() == (2, 0), "a tensor says that it lies on the first CUDA device")
        expect((square(tw.from_dlpack(lent)).numpy() == np.arange(100) ** 2).all(), "what is lent and taken again has the same elements")
        try:
            import torch
            has_gpu = torch.cuda.is_available()
        except ImportError:
            has_gpu = False
        if not has_gpu:
            print("there is no PyTorch with a GPU here")
            return
        theirs = torch.zeros(1 << 24, device="cuda")
        for _ in range(20):
            theirs += 1
        squares = square(tw.from_dlpack(theirs))
        expect((squares.numpy() == 400).all(), "what PyTorch has under way is waited for")
        back = torch.from_dlpack(squares)
        expect(back.is_cuda and bool((back == 400).all()), "PyTorch reads ours")


CHECKS = {f.__name__: f for f in (capture, like_the_cpu, memory_cap, out_of_memory, overlap, failures, two_sessions, trace, loss_scale, dlpack)}

if __name__ == "__main__":
    CHECKS[sys.argv[1]]()
