"""Tests of access to several variables at one time: reads are consistent, assignments happen together or not at all, and an overtaken
assignment is reported."""
import threading

import numpy as np

import cases
import thalweg
from blocking import fails
from thalweg import ops

FLOAT, INT64 = thalweg.float32, thalweg.int64
N, STEPS = 5, 400


def place(n=N, start=0.0):
    graph = thalweg.Graph()
    with graph:
        variables = [thalweg.Variable(np.float32(start), name=f"v{k}") for k in range(n)]
        init = thalweg.initializer()
    session = thalweg.Session(graph, container=f"snapshot {id(graph)}")
    session.run(init)
    return graph, session, variables


graph, session, variables = place()
with graph:
    values, versions = thalweg.read_variables(variables)
    new = [thalweg.placeholder(FLOAT, []) for _ in range(N)]
    known = thalweg.placeholder(INT64, [N])
    assign = thalweg.assign_variables(variables, new)
    commit = thalweg.assign_variables(variables, new, known)


def feeds(numbers, seen=None):
    return dict(zip(new, map(np.float32, numbers))) | ({} if seen is None else {known: seen})


cases.holds("assigned", bool(session.run(assign, feeds(range(N)))))
cases.equal("read together", np.array(session.run(values)), np.arange(N, dtype=np.float32))
_, seen = session.run([values, versions])
cases.holds("nothing came between", bool(session.run(commit, feeds([7] * N, seen))))
cases.holds("one update came between", not session.run(commit, feeds([8] * N, seen)))
cases.equal("nothing was assigned", np.array(session.run(values)), np.full(N, 7, np.float32))
_, seen = session.run([values, versions])
session.run(variables[3].assign(1.0))
cases.holds("of one variable alone, too", not session.run(commit, feeds([9] * N, seen)))
_, seen = session.run([values, versions])
session.run(commit, feeds([9] * N, seen * 0))
cases.holds("one that comes to nothing is no update", bool(session.run(commit, feeds([9] * N, seen))))

# A read is never a mix of two assignments; values that were read do not change.
graph, session, variables = place()
with graph:
    number = thalweg.placeholder(FLOAT, [])
    assign, (values, _) = thalweg.assign_variables(variables, [number] * N), thalweg.read_variables(variables)
stop, mixed = threading.Event(), []


def write(first):
    for k in range(STEPS):
        session.run(assign, {number: np.float32(first + 2 * k)})


def read():
    while not stop.is_set():
        got = session.run(values)
        if len(set(map(float, got))) > 1:
            mixed.append(got)


writers, readers = [threading.Thread(target=write, args=(k,)) for k in range(2)], [threading.Thread(target=read) for _ in range(2)]
for t in writers + readers:
    t.start()
for t in writers:
    t.join()
stop.set()
for t in readers:
    t.join()
cases.holds("no mix was read", not mixed, str(mixed[:1]))

# Transfers between accounts: none is lost, and the sum stays the same although no step holds a lock from its read to its assignment.
graph, session, variables = place(4, 100.0)
with graph:
    values, versions = thalweg.read_variables(variables)
    move = thalweg.placeholder(FLOAT, [4])
    done = thalweg.assign_variables(variables, [v + move[k] for k, v in enumerate(values)], versions)
retries = []


def transfer(seed):
    rng = np.random.default_rng(seed)
    for _ in range(STEPS // 4):
        amounts = np.zeros(4, np.float32)
        amounts[rng.permutation(4)[:2]] = 1, -1
        while not session.run(done, {move: amounts}):
            retries.append(1)


threads = [threading.Thread(target=transfer, args=(k,)) for k in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
cases.equal("the sum", float(sum(map(float, session.run(values)))), 400.0)
moved = [float(x) for x in session.run(values)]
expected = np.full(4, 100.0)
for seed in range(4):
    rng = np.random.default_rng(seed)
    for _ in range(STEPS // 4):
        expected[rng.permutation(4)[:2]] += 1, -1
cases.equal("each account", np.array(moved), expected)

# More variables than a kernel can open without an allocation.
graph, session, variables = place(200)
with graph:
    values, versions = thalweg.read_variables(variables)
    done = thalweg.assign_variables(variables, [v + 1.0 for v in values], versions)
session.run(done)
cases.equal("200", np.array(session.run(values)), np.ones(200, np.float32))

# ---- Gradients and errors ----

graph, session, variables = place(2, 3.0)
with graph:
    (a, b), _ = thalweg.read_variables(variables)
    gradients = thalweg.gradients(a * b * b, variables)
cases.equal("gradients", np.array(session.run(gradients)), np.float32([9, 18]))

graph, session, variables = place(2)
with graph:
    fails("types", "INVALID_ARGUMENT", lambda: session.run(ops.ReadVariables([v.handle for v in variables], dtypes=[FLOAT, INT64])[0]), "float", "int64")
    fails("numbers", "INVALID_ARGUMENT", lambda: ops.AssignVariables([v.handle for v in variables], [-1, -1], [1.0], N=2), "2 variables have 1 values")
    fails("one twice", "INVALID_ARGUMENT",
          lambda: session.run(ops.AssignVariables([variables[0].handle] * 2, thalweg.constant([-1, -1], INT64), [1.0, 2.0], N=2)), "the same resource")
    late = thalweg.Variable(np.float32(1), name="late")
    fails("no value yet", "FAILED_PRECONDITION", lambda: session.run(thalweg.read_variables([late])[0]), "is not initialised")
cases.finish()
