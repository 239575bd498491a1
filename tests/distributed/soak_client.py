"""A client that another process stops or kills: soak_client.py TRANSPORT TARGET CREDENTIALS vanish|slow

Prints `ready` when its steps run. vanish: the steps of its sessions wait for ever, and it never ends by itself. slow: it makes large
fetches and checks their values when it reads a line; then it prints `good` and ends. CREDENTIALS: "" for none."""
import sys

import numpy as np

import thalweg as tw

transport, target, credentials, mode = sys.argv[1:5]
tw.load_plugin(transport)
options = {"credentials": credentials} if credentials else {}
SIZE = 1 << 20  # floats


def waiting():
    """Starts a step that runs on both parameter servers and waits for an element that is never enqueued."""
    graph = tw.Graph()
    with graph:
        with tw.device("/job:ps/task:0"):
            queue = tw.ops.fifo_queue_v2(component_types=[np.float32])
            element = tw.ops.queue_dequeue_v2(queue, component_types=[np.float32])[0]
        with tw.device("/job:ps/task:1"):
            out = tw.ops.neg(element)
        with tw.device("/job:worker/task:1"):
            plain = tw.ops.neg(tw.constant(np.float32(1)))
    session = tw.Session(graph, target=target, **options)
    assert session.run(plain) == -1
    return session, session.run_async(out)


def large():
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(np.float32, [], name="x")
        with tw.device("/job:ps/task:0"):
            filled = tw.ops.fill(tw.constant(np.array([SIZE], np.int32)), x)
        with tw.device("/job:worker/task:0"):
            out = tw.ops.neg(filled)
    session = tw.Session(graph, target=target, **options)
    return session, [session.run_async(out, {x: np.float32(i)}) for i in range(8)]


held = [waiting() for _ in range(4)] if mode == "vanish" else large()
print("ready", flush=True)
sys.stdin.readline()
if mode == "slow":
    for i, future in enumerate(held[1]):
        value = future.result()
        assert value.shape == (SIZE,) and np.all(value == -i), i
    print("good", flush=True)
