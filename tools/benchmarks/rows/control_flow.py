"""Row 38: the cost of branches and loops: 1,000 additions of one element one after the other, in a branch and in a loop of ten iterations,
as functions (If, While) and as primitives (Switch and Merge, frames), against the same additions without them; and in a graph with a loop
that the step does not need, which costs nothing."""
from bench import Goal

NUMBER = 38
TITLE = "overhead of branches and loops"
WAYS = {"beside": ("beside a loop that is not needed", Goal(1.02)), "if": ("in an If", Goal(1.1)),
        "switch": ("between Switch and Merge", None), "while": ("in a While of ten rounds", Goal(1.25)),
        "frames": ("in a loop of primitives", None)}

MISSED = """Row 38: a round of a While calls two functions, some 5,000 instructions each, beside a hundred additions of one element, which
take 12,000. Bodies of larger arrays do not notice."""


def run(bench):
    ours, peer = bench.ours(1), bench.peer("TensorFlow", 1)
    for way, (what, goal) in WAYS.items():
        bench.compare(f"per addition, {what}", ("Thalweg", ours, f"control_flow {way}"), ("without", ours, "control_flow plain"), unit="ns",
                      goal=goal)
    for way, (what, _) in [("plain", ("plain", None)), *WAYS.items()]:
        if way != "beside":
            bench.compare(f"per addition, {what}", ("Thalweg", ours, f"control_flow {way}"), ("TensorFlow", peer, f"control_flow {way}"),
                          unit="ns", goal=Goal(1))
