"""Shared by rows 6 and 7: the worker with the kernels of other libraries, and the check that its results are ours."""
from workers import Absent, Failed, Worker


def start(bench, threads):
    """Returns the worker, whose libraries have that many threads, or None if it could not be built."""
    count = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    try:
        return bench.worker(f"libraries {threads}", lambda log: Worker([bench.program("libraries_worker"), threads], threads, log, count))
    except (Absent, Failed):
        return None


def check_same(ours, mine, name, worker, theirs):
    """Checks that both answer their command with the same sum over their results, which are exact."""
    a, b = ours.ask(mine)[0], worker.ask(theirs)[0]
    if a != b:
        raise Failed(f"{name} and Thalweg do not compute the same: {theirs}: {b!r} against {a!r}")


def where(threads):
    return f"{threads} thread{'s' * (threads > 1)}"


def limit(bench, flop, threads):
    """Returns the figure with which ours is compared if there is no library."""
    return "FMA limit", lambda: flop / bench.machine().ask(f"fma {threads}")[0]
