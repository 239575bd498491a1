"""Loops and branches of primitives around what has effects: variables, queues that let kernels wait, steps that stop; what a trace tells of
iterations. What programs without effects compute is control_flow_golden_test.py's."""
import itertools
import threading

import numpy as np

import cases
import thalweg
from thalweg import ops

frames = map("frame{}".format, itertools.count())


def loop(start, goes_on, body, outside=(), parallel=10):
    """while goes_on(x, *outside): x = body(x, *outside), by hand."""
    graph, frame = start.graph, next(frames)
    entered = ops.enter(start, frame_name=frame, parallel_iterations=parallel)
    outside = [ops.enter(x, frame_name=frame, is_constant=True, parallel_iterations=parallel) for x in outside]
    here = ops.merge([entered, entered]).output
    with thalweg.control_dependencies([here]):
        more = ops.loop_cond(goes_on(here, *outside))
    last, inside = ops.switch(here, more)
    inside = ops.identity(inside)
    with thalweg.control_dependencies([inside]):
        graph.close_loop(here, ops.next_iteration(body(inside, *outside)))
    return ops.exit(last)


def fails(where, kind, session, *fetch, says="", **how):
    try:
        session.run(*fetch, **how)
    except kind as error:
        cases.holds(where, says in str(error), error)
    else:
        cases.holds(where, False, "it does not fail")


def variables():
    for threads in (1, 4):
        with thalweg.Graph(thalweg.Runtime(threads=threads)) as graph:
            v = thalweg.Variable(np.float32(1))
            handle = v.handle

            def body(i, h):
                with thalweg.control_dependencies([ops.assign_add_variable_op(h, thalweg.constant(2.0))]):
                    return i + thalweg.constant(1)

            n = loop(thalweg.constant(0), lambda i, h: i < thalweg.constant(10), body, [handle])
        with thalweg.Session(graph) as session:
            session.run(graph.initializer())
            cases.equal("a variable is changed in every iteration", np.asarray(session.run(n)), np.int32(10))
            cases.equal("and keeps it", np.asarray(session.run(v)), np.float32(21))


def queues():
    for threads in (1, 4):
        with thalweg.Graph(thalweg.Runtime(threads=threads)) as graph:
            handle = ops.fifo_queue_v2(component_types=[thalweg.float32], shapes=[[]], shared_name=f"loop{threads}")
            x = thalweg.placeholder("float32", [])
            put = ops.queue_enqueue_v2(handle, [x])
            # Takes numbers until one is negative, and answers the last sum.
            total = loop(thalweg.constant(0.0), lambda s, q: s < thalweg.constant(10.0),
                         lambda s, q: s + ops.queue_dequeue_v2(q, component_types=[thalweg.float32])[0], [handle])
        with thalweg.Session(graph) as session:
            got = []
            reader = threading.Thread(target=lambda: got.append(session.run(total)))
            reader.start()
            for _ in range(6):
                session.run(put, {x: np.float32(2)})
            reader.join(20)
            cases.equal("a loop waits at a queue in every iteration", np.asarray(got), np.array([10], np.float32))
            fails("a loop that waits at a queue ends with its deadline", thalweg.DeadlineExceededError, session, total, timeout=0.05)


def stuck():
    with thalweg.Graph() as graph:
        a = ops.enter(thalweg.constant(1.0), frame_name="stuck")
        never = ops.next_iteration(ops.merge([a, a]).output)
        y = ops.exit(never + a)
        dead, alive = ops.switch(thalweg.constant(3.0), thalweg.constant(True))
        z = -dead
    with thalweg.Session(graph) as session:
        fails("a step of which nothing can run any more ends", thalweg.InvalidArgumentError, session, y,
              says="'AddV2' in iteration 0 of frame 'stuck'")
        fails("a dead fetch says so", thalweg.InvalidArgumentError, session, z, says="it is fetched, but dead")
        cases.equal("the rest still runs", np.asarray(session.run(alive)), np.float32(3))


def reports():
    with thalweg.Graph() as graph:
        n = loop(thalweg.constant(0), lambda i: i < thalweg.constant(7), lambda i: i + thalweg.constant(1))
    with thalweg.Session(graph) as session:
        stats = thalweg.StepStats()
        session.run(n, stats=stats)
        adds = [x for x in stats.nodes if x.op == "AddV2"]
        cases.holds("a trace has a record for each iteration", len(adds) == 7, len(adds))
        plan = session.callable(n).plan()
        cases.holds("a plan says which engine runs it", plan["engine"] == "frames", plan["engine"])
        cases.holds("shapes that no iteration changes are known", not any(node["dynamic"] for node in plan["nodes"]))


if __name__ == "__main__":
    variables()
    queues()
    stuck()
    reports()
    cases.finish()
