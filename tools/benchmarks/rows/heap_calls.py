"""Row 17, the part without models: how often 100 warm training steps call the heap."""
import subprocess

from bench import Goal
from workers import Failed

NUMBER = 17
TITLE = "heap calls of 100 warm training steps"


def run(bench):
    for threads in (1, 2):
        done = subprocess.run([bench.program("heap_calls"), str(threads)], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"heap_calls: {done.stderr}")
        bench.note(f"100 steps of a perceptron with Adam, {threads} thread{'s' * (threads > 1)}", "calls", float(done.stdout), "none", None,
                   Goal(0, of="ours"))
