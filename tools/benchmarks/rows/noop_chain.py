"""Row 2: a chain of 10,000 nodes that do nothing and depend on each other: the cost of the executor alone, per node."""
from bench import Goal

NUMBER = 2
MISSED = """Row 2, counted: every node takes the general path of the executor and subtracts itself from the count of the step, which all
threads share; in fixed order a node of this kind is one indirect call."""
TITLE = "chain of 10,000 empty kernels: fixed order, counted"


def run(bench):
    threads = min(2, bench.cpus())
    ours, machine = bench.ours(threads), bench.machine()
    for engine, most in (("fixed", 25), ("counted", 50)):
        what = f"{engine} order, per node"
        command = ("Thalweg", ours, f"noop_{engine} 30")
        bench.compare(what, command, ("prototype loop", machine, "loop 30"), unit="ns", goal=Goal(most, of="ours"))
        bench.compare(what, command, ("prototype loop", machine, "loop 30"), unit="ns", goal=Goal(5) if engine == "fixed" else None)
        bench.compare(what, command, ("closure pool", machine, "closures 10"), unit="ns", goal=Goal(0.2))
