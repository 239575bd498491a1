"""Tests of loops and branches made of primitives around ops with effects: variables, queues that make kernels wait, steps that stop; and of
iterations in a trace. control_flow_golden_test.py has the programs without effects."""
import threading
import time

import numpy as np

import cases
import thalweg
from loops import frames, loop
from thalweg import ops
from tw import SESSION, runtime


FLOAT = thalweg.float32
FRAMES = {"disable_pass": "sequence"}  # loops that do not need frames use them, too


def fails(where, kind, session, *fetch, says="", **how):
    """Checks that the run fails. says: a text of the message, or several."""
    try:
        session.run(*fetch, **how)
    except kind as error:
        cases.holds(where, all(text in str(error) for text in ([says] if isinstance(says, str) else says)), error)
    else:
        cases.holds(where, False, "it does not fail")


def variables():
    for threads in (1, 4):
        with thalweg.Graph(runtime(threads=threads)) as graph:
            v = thalweg.Variable(np.float32(1))
            handle = v.handle

            def body(i, h):
                with thalweg.control_dependencies([ops.assign_add_variable_op(h, thalweg.constant(2.0))]):
                    return i + thalweg.constant(1)

            n = loop(thalweg.constant(0), lambda i, h: i < thalweg.constant(10), body, [handle])
        with thalweg.Session(graph, **SESSION) as session:
            session.run(graph.initializer())
            cases.equal("a variable is changed in every iteration", np.asarray(session.run(n)), np.int32(10))
            cases.equal("and keeps it", np.asarray(session.run(v)), np.float32(21))


def queues():
    for threads in (1, 4):
        with thalweg.Graph(runtime(threads=threads)) as graph:
            handle = ops.fifo_queue_v2(component_types=[thalweg.float32], shapes=[[]], shared_name=f"loop{threads}")
            x = thalweg.placeholder("float32", [])
            put = ops.queue_enqueue_v2(handle, [x])
            # The loop dequeues numbers until one is negative, and returns the last sum.
            total = loop(thalweg.constant(0.0), lambda s, q: s < thalweg.constant(10.0),
                         lambda s, q: s + ops.queue_dequeue_v2(q, component_types=[thalweg.float32])[0], [handle])
        with thalweg.Session(graph, **SESSION) as session:
            got = []
            reader = threading.Thread(target=lambda: got.append(session.run(total)))
            reader.start()
            for _ in range(6):
                session.run(put, {x: np.float32(2)})
            reader.join(60)
            cases.equal("a loop waits at a queue in every iteration", np.asarray(got), np.array([10], np.float32))
            fails("a loop that waits at a queue ends with its deadline", thalweg.DeadlineExceededError, session, total, timeout=0.05)


def bounds():
    """As many iterations run at once as the loop allows, and the end of an iteration frees its values."""
    for at_once in (1, 2, 10):
        with thalweg.Graph(runtime(threads=4)) as graph:
            begun, go = (ops.fifo_queue_v2(component_types=[FLOAT], shapes=[[]], shared_name=f"{name}{at_once}")
                         for name in ("begun", "go"))

            def body(i, total, begun, go):
                with thalweg.control_dependencies([ops.queue_enqueue_v2(begun, [i])]):
                    return [i + thalweg.constant(1.0), total + ops.queue_dequeue_v2(go, component_types=[FLOAT])[0]]

            end = loop([thalweg.constant(0.0), thalweg.constant(0.0)], lambda i, *_: i < thalweg.constant(20.0), body, [begun, go],
                       at_once)
            size, let_go = ops.queue_size_v2(begun), ops.queue_enqueue_v2(go, [thalweg.constant(1.0)])
        with thalweg.Session(graph, **SESSION) as session:
            step = session.run_async(end[1])
            for k in range(20):
                wanted, until = min(20, at_once + k), time.monotonic() + 60
                while session.run(size) < wanted and time.monotonic() < until:
                    time.sleep(0.001)
                time.sleep(0.01)
                cases.equal(f"{at_once} iterations at once, {k} over", np.asarray(session.run(size)), np.int32(wanted))
                session.run(let_go)
            cases.equal(f"{at_once} iterations at once", np.asarray(step.result()), np.float32(20))
    with thalweg.Graph() as graph:
        megabyte = lambda i, total: [i + thalweg.constant(1.0), total + ops.sum(ops.fill([1 << 18], i) * thalweg.constant(1.0), 0)]
        end = loop([thalweg.constant(0.0), thalweg.constant(0.0)], lambda i, _: i < thalweg.constant(200.0), megabyte)
    with thalweg.Session(graph, memory_limit="32M", **SESSION) as session:
        cases.equal("what an iteration holds goes with it", np.asarray(session.run(end[1])), np.float32(19900 * (1 << 18)))


def stuck():
    with thalweg.Graph() as graph:
        a = ops.enter(thalweg.constant(1.0), frame_name="stuck")
        never = ops.next_iteration(ops.merge([a, a]).output)
        y = ops.exit(never + a)
        mixed = a + thalweg.constant(1.0)
        dead, alive = ops.switch(thalweg.constant(3.0), thalweg.constant(True))
        z = -dead
    with thalweg.Session(graph, **SESSION) as session:
        fails("a step of which nothing can run any more ends", thalweg.InvalidArgumentError, session, y,
              says="'AddV2' in iteration 0 of frame 'stuck'")
        fails("a value that does not leave its loop is told with the loop", thalweg.InvalidArgumentError, session, mixed,
              says="'Enter' leaves frame 'stuck' by an Exit, which is missing here")
        fails("so is one that is fetched there", thalweg.InvalidArgumentError, session, a, says="is in frame 'stuck'")
        fails("a dead fetch says so", thalweg.InvalidArgumentError, session, z, says="it is fetched, but dead")
        cases.equal("the rest still runs", np.asarray(session.run(alive)), np.float32(3))


def fails_while_another_waits():
    """A step that cannot choose a branch ends although one of its ops waits at a queue that is never filled."""
    with thalweg.Graph(runtime(threads=4)) as graph:
        soon, never = (ops.fifo_queue_v2(component_types=[kind], shared_name=f"{name} filled")
                       for name, kind in (("soon", thalweg.as_dtype("bool")), ("never", FLOAT)))
        pred, = ops.queue_dequeue_v2(soon, component_types=[thalweg.as_dtype("bool")])
        sides = ops.switch(thalweg.constant(1.0), pred)
        y, waits = ops.merge([sides.output_false, sides.output_true]).output, ops.queue_dequeue_v2(never, component_types=[FLOAT])[0]
        put = ops.queue_enqueue_v2(soon, [thalweg.constant([True, False])])
    with thalweg.Session(graph, step_timeout_ms=20000, **SESSION) as session:
        step = session.run_async([y, waits])
        time.sleep(0.05)
        session.run(put)
        since = time.monotonic()
        try:
            step.result()
        except thalweg.InvalidArgumentError as error:
            cases.holds("a branch that cannot be chosen fails its step", "must be a scalar" in str(error), error)
        cases.holds("a step that fails does not wait at its queues", time.monotonic() - since < 10, "it ends by its time limit")


def unset(i, h, flow):
    return ops.tensor_array_read_v3(h, i, flow, dtype=FLOAT, name="bad")


def cleared(i, h, flow):
    return ops.tensor_array_read_v3(h, thalweg.constant(0), flow, dtype=FLOAT, name="bad")


def written_twice(i, h, flow):
    return ops.tensor_array_write_v3(h, ops.maximum(i, thalweg.constant(2)), thalweg.constant(1.0), flow, name="bad")


def wrong_in_arrays():
    """Yields faults of a loop with an array of six elements, of which 0 and 1 are written: the fault, its iteration and the message."""
    for body, at, says in ((unset, 2, "never written"), (cleared, 1, "clear_after_read"), (written_twice, 1, "before")):
        with thalweg.Graph() as graph:
            h, flow = ops.tensor_array_v3(6, dtype=FLOAT)
            for k in range(2):
                flow = ops.tensor_array_write_v3(h, k, thalweg.constant(1.0), flow)
            hides = lambda i, last, h, flow: [i + thalweg.constant(1), body(i, h, flow) * thalweg.constant(0.0) + last]
            end = loop([thalweg.constant(0), thalweg.constant(0.0)], lambda i, *_: i < thalweg.constant(6), hides, [h, flow], parallel=1)
        yield graph, end[1], at, thalweg.Error, says


def wrong_elsewhere():
    with thalweg.Graph() as graph:  # a queue of two values that is closed
        q = ops.fifo_queue_v2(component_types=[FLOAT], shapes=[[]], shared_name="closed in a loop")
        with thalweg.control_dependencies([ops.queue_enqueue_many_v2(q, [thalweg.constant([1.0, 2.0])])]):
            closed = ops.queue_close_v2(q, cancel_pending_enqueues=True)
        with thalweg.control_dependencies([closed]):
            q = ops.identity(q)
        add = lambda s, q: s + ops.queue_dequeue_v2(q, component_types=[FLOAT], name="bad")[0]
        end = loop(thalweg.constant(0.0), lambda s, _: s < thalweg.constant(9.0), add, [q])
    yield graph, end, 2, thalweg.OutOfRangeError, "is closed"
    with thalweg.Graph() as graph:  # a value that grows until it fits no more
        two = thalweg.constant([1.0, 2.0])
        grow = lambda i, y, two: [i + thalweg.constant(1), ops.concat_v2([y, y * ops.sum(ops.add_v2(y, two, name="bad"), 0)], 0)]
        end = loop([thalweg.constant(0), thalweg.constant([1.0])], lambda i, *_: i < thalweg.constant(6), grow, [two])
    yield graph, end[1], 2, thalweg.InvalidArgumentError, "[4]"
    with thalweg.Graph() as graph:  # a stack of one value
        stack = ops.stack_v2(9, elem_type=FLOAT)
        with thalweg.control_dependencies([ops.stack_push_v2(stack, thalweg.constant(1.0))]):
            zero = ops.identity(thalweg.constant(0.0))
        end = loop(zero, lambda s, _: s < thalweg.constant(9.0), lambda s, h: s + ops.stack_pop_v2(h, elem_type=FLOAT, name="bad"), [stack])
    yield graph, end, 1, thalweg.Error, "empty"


def wrong():
    """An error in a loop names its node, iteration and frame, and the session goes on."""
    for graph, end, at, kind, says in (*wrong_in_arrays(), *wrong_elsewhere()):
        with graph:
            other = loop(thalweg.constant(0), lambda i: i < thalweg.constant(5), lambda i: i + thalweg.constant(1))
        for options, where in (({**FRAMES, "container": "frames"}, (f"in iteration {at} of frame 'frame",)),
                               ({"container": "calls"}, ("frame 'frame", f"in iteration {at}"))):
            with thalweg.Session(graph, **{**SESSION, **options}) as session:
                fails(f"a loop that goes wrong in iteration {at}", kind, session, end, says=("'bad'", *where, says))
                cases.equal("the session goes on", np.asarray(session.run(other)), np.int32(5))


def references():
    """RefSwitch, RefMerge, RefSelect (which runs as _SelectHandle), RefEnter, RefExit and RefNextIteration change the right variable, and
    nothing is read earlier."""
    with thalweg.Graph() as graph:
        x = thalweg.placeholder("bool", [])
        names = ("taken", "other", "round")
        a, b, v = (graph.op("VariableV2", shape=[], dtype="float32", shared_name=f"branch_{name}") for name in names)
        start = [graph.op("Assign", r, np.float32(value)) for r, value in ((a, 1), (b, 10), (v, 1))]
        off, on = ops.ref_switch(a, x)
        off_b, on_b = ops.ref_switch(b, x)
        both, which = ops.ref_merge([off_b, on])
        added = graph.op("AssignAdd", both, np.float32(5))
        chosen = graph.op("AssignSub", ops.ref_select(ops.cast(x, DstT="int32"), [a, b]), np.float32(1))
        outside = ops.ref_select(thalweg.constant(2), [a, b])
        inside = ops.ref_enter(v, frame_name=next(frames))
        here = ops.ref_merge([inside, inside]).output
        with thalweg.control_dependencies([here]):
            more = ops.loop_cond(here < thalweg.constant(30.0))
        last, body = ops.ref_switch(here, more)
        graph.close_loop(here, ops.ref_next_iteration(graph.op("AssignAdd", body, body)))
        out = ops.ref_exit(last)
    for threads in (1, 4):
        data = graph.to_bytes()
        again = thalweg.Graph.from_bytes(data, thalweg.Runtime(threads=threads))
        cases.holds("loops of references are written as they are read", again.to_bytes() == data)
        find = lambda value: again.output(value.name)
        with thalweg.Session(again) as session:
            session.run([find(s) for s in start])
            for taken, wanted, index in ((True, 6, 1), (False, 15, 0)):
                got = session.run([find(added), find(which)], {find(x): np.array(taken)})
                cases.equal(f"the variable of the branch is changed where pred is {taken}", got[0], np.float32(wanted))
                cases.equal("and its number is told", got[1], np.int32(index))
            cases.equal("a variable is chosen", session.run(find(chosen), {find(x): np.array(True)}), np.float32(14))
            fails("one that is not there is refused", thalweg.InvalidArgumentError, session, find(outside), says="'index' is 2")
            cases.equal("a loop changes the variable in every iteration", session.run(find(out)), np.float32(32))
            cases.equal("and no other", session.run([find(a), find(b), find(v)]), np.array([6, 14, 32], np.float32))


def reports():
    with thalweg.Graph() as graph:
        n = loop(thalweg.constant(0), lambda i: i < thalweg.constant(7), lambda i: i + thalweg.constant(1))
    for options in (FRAMES, {}):
        with thalweg.Session(graph, **{**SESSION, **options}) as session:
            stats = thalweg.StepStats()
            session.run(n, stats=stats)
            adds = [x for x in stats.nodes if x.op == "AddV2"]
            cases.holds("a trace has a record for each iteration", len(adds) == 7, len(adds))
            plan = session.callable(n).plan()
            in_frames = bool(options or SESSION)  # with other devices, loops always use frames
            cases.holds("a plan says which engine runs it", (plan["engine"] == "frames") == in_frames, plan["engine"])
            cases.holds("and which loops need no frames", [x["frame"][:5] for x in plan["sequences"]] == [[], ["frame"]][not in_frames],
                        plan["sequences"])
            cases.holds("shapes that no iteration changes are known", not any(node["dynamic"] for node in plan["nodes"]))


if __name__ == "__main__":
    variables()
    queues()
    bounds()
    stuck()
    fails_while_another_waits()
    wrong()
    references()
    reports()
    cases.finish()
