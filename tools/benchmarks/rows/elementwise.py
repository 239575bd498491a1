"""Row 8: element-wise work on 16M and 64K elements: single operations, a chain of six, softmax and layer norm made of primitives. Fused
execution is compared with execution node by node, and with the time in which the machine moves as many bytes."""
from bench import Goal

NUMBER = 8
TITLE = "element-wise chain, softmax and layer norm, 16M and 64K elements"
MISSED = """Row 8 on 64K elements: the table stays in the second-level cache, from which a loop reads as fast as it writes to the first;
what fusing saves there is only the call."""
STREAMS = {"add": 3, "mul": 3, "relu": 2, "chain": 2, "softmax": 2, "layer_norm": 2}  # number of arrays that are read or written


def run(bench):
    for threads in (1, 2):
        ours, where = bench.ours(threads), f"{threads} thread{'s' * (threads > 1)}"
        for name, streams in STREAMS.items():
            command = ("Thalweg", ours, f"elementwise {name} 16384 on 5")
            goal = Goal(1 / 0.9) if name == "chain" else Goal(1 / 0.85) if streams == 3 or name == "relu" else None
            bench.compare(f"{name}, 16M, {where}", command, ("triad", bench.machine(), f"stream {threads} {streams << 26}"), unit="us", goal=goal,
                          threads=threads)
        for name in ("chain", "softmax", "layer_norm"):
            for size, rows in (("16M", 16384), ("64K", 64)):
                samples = 5 if rows > 1000 else 50
                bench.compare(f"{name}, {size}, {where}", ("Thalweg", ours, f"elementwise {name} {rows} on {samples}"),
                              ("Thalweg, not fused", ours, f"elementwise {name} {rows} off {samples}"), unit="us", goal=Goal(0.45),
                              threads=threads)
