"""A program that uses what the binding has, for typing_test.py."""
import asyncio
import concurrent.futures
import logging
from typing import Any

import numpy as np
import numpy.typing as npt

import thalweg as tw


def dense(h: tw.Output, n: int, name: str) -> tw.Output:
    with tw.name_scope(name):
        w = tw.Variable(tw.ops.truncated_normal([4, n], dtype=tw.float32, seed=1) * 0.1, name="w")
        return h @ w + tw.Variable(np.zeros(n, np.float32), name="b")


@tw.function(results=["float32"])
def doubled(h: tw.Output) -> tw.Output:
    return h * 2


def build() -> tuple[tw.Graph, tw.Output, tw.Output, tw.Output, tw.Operation]:
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None, 4], name="x")
        y = tw.placeholder(tw.int32, [None], name="y")
        z = dense(x, 3, "dense")
        cost = tw.ops.sparse_softmax_cross_entropy_with_logits(z, y)
        loss: tw.Output = cost.loss.mean() + 0.0005 * doubled(tw.ops.l2_loss(z))
        found: Any = tw.gradients(loss, g.variables())
        assert len(found) == 2
        with tw.device("CPU:0"), tw.control_dependencies([loss]):
            tw.ops.no_op(name="nothing")
        parts: list[tw.Output] = tw.ops.split(1, z, num_split=3)
        _ = (parts[0][:, 0] > 0) & ~(z[..., 0] <= -z.max(axis=1)), abs(z) ** 2 // 1 % 3, z.T.reshape(-1).astype("float64")
        return g, x, y, loss, tw.train.Adam(0.01).minimize(loss)


def without_a_graph() -> float:
    x: tw.Output = tw.constant([1.0, 2.0])
    with tw.Eager(threads=1), tw.Tape() as tape:
        tape.watch(x)
        y = (x * x).sum()
    slope: Any = tape.gradient(y, x)
    return float(y.item()) + float(x.numpy()[0]) + float(slope.numpy().sum()) + float(tw.grad(lambda v: v * v)(1.0).item())


async def served(s: tw.Session, value: tw.Output, feeds: dict[Any, npt.NDArray[np.float32]]) -> Any:
    return await asyncio.wrap_future(s.run_async(value, feeds))


def main() -> None:
    assert without_a_graph() == 5 + 1 + 6 + 2
    g, x, y, loss, step = build()
    batches = tw.train.Batches(np.ones((8, 4), np.float32), np.zeros(8, np.int32), size=4, epochs=2)
    images = np.ones((2, 4), np.float32)
    tw.log.set(logging.getLogger("thalweg"))
    with tw.Session(g, threads=1, optimize=True, disable_pass=["fold", "cse"]) as s:
        s.run(g.initializer())
        for bx, by in batches:
            value: float = s.run([loss, step], {x: bx, y: by}, timeout=10.0, cancel=tw.CancelToken())[0]
        f: tw.Callable = s.callable(loss, [x, y])
        f(images, [0, 1], stats=(stats := tw.StepStats()))
        busy: list[tuple[str, int]] = [(o.op, o.busy_ns) for o in stats.ops]
        assert busy and stats.to_json() and s.plan(loss, {x: [2, 4], y: [2]})["nodes"] and s.plan([x * 2], [x])["feeds"]
        future: tw.Future = f.run_async(images, [0, 1], timeout=10)
        done, _ = concurrent.futures.wait([future])
        assert done and future.result() > 0 and value > 0
        assert asyncio.run(served(s, x * 2, {x: images})).sum() == 16
        tensor: tw.Tensor = s.run(x, {x: tw.Tensor(images)}, as_tensors=True)
        shared: npt.NDArray[Any] = tensor.numpy()
        assert shared.shape == tensor.shape and tensor.dtype == tw.float32
        saver = tw.Saver()
        saver.save(s, "model")
        saver.restore(s, "model")
    with tw.Checkpoint("model") as c:
        assert "dense/w" in c.names
    try:
        tw.load_plugin("nowhere.so")
    except tw.NotFoundError as e:
        assert e.code_name == "NOT_FOUND" and e.operation is None and e.line is None
    assert [d.kind for d in tw.devices()] and [p.id for p in tw.plugins()] and tw.Session.options()["threads"].default == "0"
    print("ok")


main()
