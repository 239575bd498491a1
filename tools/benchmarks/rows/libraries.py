"""What rows 6 and 7 share: the worker of other people's kernels, and telling that it computes what we do."""
from workers import Absent, Failed, Worker


def start(bench, threads):
    """The worker, whose libraries have that many threads. None where it could not be built."""
    count = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    try:
        return bench.worker(f"libraries {threads}", lambda log: Worker([bench.program("libraries_worker"), threads], threads, log, count))
    except (Absent, Failed):
        return None


def check_same(ours, mine, name, worker, theirs):
    """Both answer their command with the same sum over their results, which are exact."""
    a, b = ours.ask(mine)[0], worker.ask(theirs)[0]
    if a != b:
        raise Failed(f"{name} and Thalweg do not compute the same: {theirs}: {b!r} against {a!r}")


def where(threads):
    return f"{threads} thread{'s' * (threads > 1)}"


def limit(bench, flop, threads):
    """What our figure is set against where there is no library."""
    return "FMA limit", lambda: flop / bench.machine().ask(f"fma {threads}")[0]
