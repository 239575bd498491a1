"""Row 4: a wide graph of nodes without dependencies, on two threads against one: kernels of 0.1, 1 and 10 microseconds."""
from bench import Goal

NUMBER = 4
MISSED = """Row 4: nodes of 10 us take 0.52 of the time on two threads, close to the goal; the rest was not looked into."""
TITLE = "wide graph, two threads against one"
GOALS = {100: 1 / 1.4, 1000: 1 / 1.8, 10000: 1 / 1.94}  # ns of a kernel: time on two threads over the time on one


def run(bench):
    ours = bench.ours(2)
    for ns, limit in GOALS.items():
        bench.compare(f"per node of {ns / 1000:g} us, 2 threads", ("Thalweg", ours, f"wide {ns}"),
                      ("Thalweg, 1 thread", ours, f"wide_one {ns}"), unit="us", goal=Goal(round(limit, 3), floor=1), threads=2)
