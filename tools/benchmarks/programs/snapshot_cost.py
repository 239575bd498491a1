"""Measures reading and assigning several variables at one time against doing so one by one: microseconds per step, the minimum of many.

usage: PYTHONPATH=build/release/python python3 snapshot_cost.py [SECONDS per line, default 0.3]"""
import sys
import time

import numpy as np

import thalweg as tw

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3


def least(step):
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - began)
    return best * 1e6


def cost(n, elements):
    with tw.Graph() as graph:
        variables = [tw.Variable(np.zeros(elements, np.float32), name=f"v{k}") for k in range(n)]
        init, value = tw.initializer(), tw.constant(np.ones(elements, np.float32)) * 1.0
        values, versions = tw.read_variables(variables)
        steps = {
            "read one by one": tw.group(*[tw.ops.identity(v.read()).operation for v in variables]),
            "read at one time": tw.group(*[tw.ops.identity(v).operation for v in values]),
            "assign one by one": tw.group(*[v.assign(value) for v in variables]),
            "assign at one time": tw.assign_variables(variables, [value] * n).operation,
            "read, change and assign one by one": tw.group(*[v.assign(v.read() + 1.0) for v in variables]),
            "read, change and assign by versions": tw.assign_variables(variables, [v + 1.0 for v in values], versions).operation,
            "add in place": tw.group(*[v.assign_add(value) for v in variables]),
        }
    session = tw.Session(graph, container=f"cost {n} {elements}")
    session.run(init)
    for name, target in steps.items():
        print(f"{n:3} variables of {elements * 4:8} bytes  {name:38} {least(session.callable([], targets=[target])):9.1f} us")


for shape in ((2, 256), (64, 256), (16, 1 << 18)):
    cost(*shape)
