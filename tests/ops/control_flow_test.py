"""Loops and branches of primitives around what has effects: variables, queues that let kernels wait, steps that stop; what a trace tells of
iterations. What programs without effects compute is control_flow_golden_test.py's."""
import threading

import numpy as np

import cases
import thalweg
from loops import frames, loop
from thalweg import ops
from tw import SESSION, runtime


def fails(where, kind, session, *fetch, says="", **how):
    try:
        session.run(*fetch, **how)
    except kind as error:
        cases.holds(where, says in str(error), error)
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
            # Takes numbers until one is negative, and answers the last sum.
            total = loop(thalweg.constant(0.0), lambda s, q: s < thalweg.constant(10.0),
                         lambda s, q: s + ops.queue_dequeue_v2(q, component_types=[thalweg.float32])[0], [handle])
        with thalweg.Session(graph, **SESSION) as session:
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


def references():
    """RefSwitch, RefMerge, RefSelect (which runs as _SelectHandle), RefEnter, RefExit and RefNextIteration: which variable is changed, and
    that nothing is read before."""
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
    with thalweg.Session(graph, **SESSION) as session:
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
    references()
    reports()
    cases.finish()
