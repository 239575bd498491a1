"""Row 33: the cost of a kernel behind the plugin ABI, over a virtual call in the same program that does the same work. All nodes read one
scalar, write one scalar and have no dependencies. A node is a frame that is filled in advance and one call of the kernel; the line `plan`
adds the executor, with all its work for a node."""
from bench import Goal

NUMBER = 33
TITLE = "boundary of the plugin ABI: one node, 10,000 nodes, against virtual calls and built-in ops"


def run(bench):
    worker = bench.program_worker("boundary", "boundary_worker", 1)
    worker.ask(f"load {bench.program('boundary_plugin')}")
    for what, ours, anchor, command, most in (("kernel in C, one node", "bare_call", "virtual call", "virtual_call", 3),
                                              ("kernel in C++, one node", "sugar_call", "virtual call", "virtual_call", 3),
                                              ("kernel in C, 10,000 nodes", "bare_calls", "virtual calls", "virtual_calls", 6),
                                              ("kernel in C++, 10,000 nodes", "sugar_calls", "virtual calls", "virtual_calls", 6),
                                              ("plan, kernels in C, 10,000 nodes", "bare_plan", "virtual calls", "virtual_calls", 6),
                                              ("plan, kernels in C++, 10,000 nodes", "sugar_plan", "virtual calls", "virtual_calls", 6)):
        bench.compare(what, ("Thalweg", worker, f"{ours} 100"), (anchor, worker, f"{command} 100"), unit="ns",
                      goal=Goal(most, of="difference"))
    bench.compare("plan, a plugin's op that does nothing", ("Thalweg", worker, "empty_plan 100"),
                  ("built-in NoOp", worker, "built_in_plan 100"), unit="ns", goal=Goal(1.1))
