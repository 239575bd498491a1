"""Row 16: a sparse look-up and update: a step gathers 1,024 rows of a table of 64 columns and updates them by gradient descent. The rows
change from step to step. Compares with PyTorch on a million rows; and a table of 1 GiB with the largest that memory allows, up to 16
GiB."""
import pathlib

from bench import Goal
from rows.mlp_step import check_losses

NUMBER = 16
TITLE = "sparse embedding look-up and update"
ROWS = 1 << 20
GIBIBYTE = 1 << 22  # rows of 64 floats
GOAL = Goal(0.3, floor=0.5)


def free_gibibytes():
    facts = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    return int(facts["MemAvailable"].split()[0]) >> 20


def largest():
    """Returns the gibibytes of the large table: 16, or as many as leave a third of the free memory, and not fewer than 2."""
    return max(2, min(16, (free_gibibytes() - 1) * 2 // 3))


def run(bench):
    for threads in (1, 2):
        ours, where = bench.ours(threads), f"{threads} thread{'s' * (threads > 1)}"
        ours.ask(f"embedding_load {ROWS}")
        peer = bench.peer("PyTorch", threads)
        if peer:
            peer.ask(f"embedding_load {ROWS}")
            check_losses("PyTorch", peer.ask("embedding_losses"), ours.ask(f"embedding_losses {ROWS}"))
        bench.compare(f"1,024 of a million rows, {where}", ("Thalweg", ours, f"embedding_step {ROWS}"),
                      ("PyTorch", peer, "embedding_step 400"), unit="us", goal=GOAL, threads=threads)
    ours, size = bench.ours(1), largest()
    for rows in (GIBIBYTE, size * GIBIBYTE):
        ours.ask(f"embedding_load {rows}")
    bench.compare(f"a table of {size} GiB, 1 thread", ("large", ours, f"embedding_step {size * GIBIBYTE}"),
                  ("a table of 1 GiB", ours, f"embedding_step {GIBIBYTE}"), unit="us", goal=Goal(1.5))
