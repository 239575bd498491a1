"""Programs as the workers of a Ray cluster: what `thalweg launch --on ray` starts.

    python3 -m thalweg.ray_programs -n 4 --ps 1 -- python3 train.py"""
import argparse
import ctypes
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Optional

from .ray import Trainer, Worker

_PR_SET_PDEATHSIG = 1


def _program(words: Sequence[str]) -> Callable[[Worker], None]:
    """Returns a function that runs a program, whose lines have the worker's name before them. The program ends with its actor."""
    def run(worker: Worker) -> None:
        prctl = ctypes.CDLL(None).prctl
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              preexec_fn=lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)) as process:
            assert process.stdout
            for line in process.stdout:
                print(f"[client/{worker.index}] {line}", end="", flush=True)
        if process.returncode:
            raise SystemError(process.returncode, f"client/{worker.index} ended with status {process.returncode}")
    return run


def main(words: Optional[Sequence[str]] = None) -> int:
    """The command line: `python3 -m thalweg.ray_programs -n N --ps M -- PROGRAM`. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="thalweg.ray_programs", description=main.__doc__)
    parser.add_argument("-n", type=int, default=1, metavar="N", help="workers")
    parser.add_argument("--ps", type=int, default=0, metavar="N", help="parameter servers")
    parser.add_argument("--restart", type=int, default=0, metavar="N", help="how often Ray restarts each actor")
    parser.add_argument("--shared", metavar="DIR", help="folder of the results (~/ray_results)")
    parser.add_argument("--allow", metavar="DIR", help="a folder beneath which the servers may read and write files for the programs")
    parser.add_argument("--threads", metavar="N")
    for option in ("--plugin", "--option", "--server-option"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("program", nargs="+")
    args = parser.parse_args(words)
    options = dict(text.split("=", 1) for text in args.server_option)
    if args.allow:
        options["allow_files"] = args.allow
    trainer = Trainer(_program(args.program), workers=args.n, ps=args.ps, max_restarts=args.restart, storage=args.shared, plugins=args.plugin,
                      options=options, runtime_options=args.option + ([f"threads={args.threads}"] if args.threads else []))
    try:
        trainer.fit()
    except Exception as e:
        print(f"thalweg.ray_programs: {e}", file=sys.stderr)
        cause = getattr(e, "cause", None)
        status = cause.args[0] if isinstance(cause, SystemError) and cause.args else 1
        return status if status > 0 else 128 - status
    return 0


if __name__ == "__main__":
    sys.exit(main())
