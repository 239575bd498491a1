"""UCX's own benchmark: active messages between two processes of this machine, by shared memory or TCP. Both processes poll.
usage: perftest_worker.py THREADS"""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))
import worker
from free_port import free_port

TRANSPORTS = {"shm": "self,posix,cma", "tcp": "self,tcp"}


def perftest(argument):
    """Returns the mean time of a message in nanoseconds. argument: "shm|tcp BYTES SAMPLES"."""
    way, size, samples = argument.split()
    environment = {**os.environ, "UCX_TLS": TRANSPORTS[way], "UCX_WARN_UNUSED_ENV_VARS": "n"}
    port = str(free_port())
    server = subprocess.Popen(["ucx_perftest", "-p", port], env=environment, stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):  # until the server listens
            time.sleep(0.05)
            client = subprocess.run(["ucx_perftest", "127.0.0.1", "-p", port, "-t", "ucp_am_bw", "-s", size, "-n", samples, "-w", "3", "-f", "-v"],
                                    env=environment, capture_output=True, text=True, timeout=300)
            if client.returncode == 0:
                break
        else:
            raise RuntimeError(client.stdout + client.stderr)
    finally:
        server.kill()
        server.wait()
    columns, figures = (line.split(",") for line in client.stdout.strip().splitlines()[-2:])
    mean = float(figures[columns.index("overall_lat")]) * 1000
    return mean, mean


worker.serve({"perftest": perftest})
