"""Row 5: 200 nodes of 10 microseconds after a pause of 5 ms, in which threads fall asleep, on two threads against one."""
from bench import Goal

NUMBER = 5
MISSED = """Row 5: the second thread sleeps in the pause, and waking it takes some 30 us of a step of 1 to 2 ms."""
TITLE = "200 nodes of 10 us after 5 ms of idleness, two threads against one"


def run(bench):
    ours = bench.ours(2)
    bench.compare("per node, 2 threads", ("Thalweg", ours, "wide_idle 10000"), ("Thalweg, 1 thread", ours, "wide_idle_one 10000"),
                  unit="us", goal=Goal(round(1 / 1.7, 3), floor=1), threads=2)
