"""Row 40: a graph that a session runs gets ten more operations, and then a step runs only these. The time of both in a graph of 100,000
operations is compared with that in one of 1,000."""
from bench import Goal

NUMBER = 40
TITLE = "ten more operations for a session that runs"


def run(bench):
    ours = bench.ours(1)
    bench.compare("adding and first step, of 100,000", ("Thalweg", ours, "extend 100000"), ("of 1,000", ours, "extend 1000"), unit="us",
                  goal=Goal(1.25))
