"""Row 20: a step that fetches 32 rows of 64 numbers from a table on a parameter server, of 1 GB and of up to 8 GB as memory allows;
and against the empty step of row 18."""
from bench import Goal
from rows.embedding import free_gibibytes

NUMBER = 20
TITLE = "distributed sparse step"
SAMPLES = 400


def run(bench):
    ours = bench.program_worker("cluster of tables", "thalweg_worker", 2)
    large = max(2, min(8, free_gibibytes() // 3))
    one, many, empty = (f"cluster_rows 1 {1 << 30} {SAMPLES}", f"cluster_rows 1 {large << 30} {SAMPLES}", f"cluster 1 4 {SAMPLES}")
    bench.compare(f"a table of {large} GiB", ("large", ours, many), ("a table of 1 GiB", ours, one), unit="us", goal=Goal(1.5, floor=1.5))
    bench.compare("a table of 1 GiB", ("rows", ours, one), ("four bytes", ours, empty), unit="us", goal=Goal(1.5))
    ours.ask("cluster_stop")
