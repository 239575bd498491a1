"""Several workers with sixteen parameter servers, all processes of this machine. usage: crowd.py THREADS

The command `step WORKERS KIND BYTES` answers the median and the 99th percentile of a step, in nanoseconds, while WORKERS workers run
steps at the same time. `stop` ends all processes. A step of kind `values` fetches the servers' values, BYTES in all; one of kind `rows`
fetches 32 rows of 64 numbers, two from each server, from a table of BYTES.

A worker is a process of its own for one task: crowd.py THREADS CLUSTER TASK KIND BYTES."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np

import thalweg as tw
import worker

SERVERS, MOST_WORKERS = 16, 16
ROWS, COLUMNS = 32, 64
SECONDS = 0.5  # length of a sample, which has at least one step
HOME = "/job:worker/task:{}"


def free_ports(n):
    """Returns n different ports: each is held until the last is found."""
    held = [socket.socket() for _ in range(n)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


# ---- A worker ----

def build(runtime, task, kind, size):
    """Returns the graph, its initializer, the fetch of a step and its feeds."""
    firsts, fed = [], {}
    with tw.Graph(runtime) as graph:
        rows = tw.placeholder("int64", [ROWS // SERVERS], name="rows")
        shape = [max(1, size // SERVERS // (COLUMNS * 4)), COLUMNS] if kind == "rows" else [max(1, size // SERVERS // 4)]
        for k in range(SERVERS):
            with tw.device(f"/job:ps/task:{k}"):
                v = tw.Variable(tw.ops.fill(np.array(shape, np.int32), np.float32(k + 1)), name=f"v{k}", trainable=False)
                value = tw.ops.resource_gather(v.handle, rows, dtype=tw.float32) if kind == "rows" else v.read()
            with tw.device(HOME.format(task)):
                firsts.append(tw.ops.slice(tw.ops.reshape(value, [-1]), [0], [1]))
        with tw.device(HOME.format(task)):
            total = tw.ops.add_n(firsts)
        if kind == "rows":
            fed[rows] = (np.arange(1, ROWS // SERVERS + 1) * 2654435761) % shape[0]
        return graph, tw.initializer(), total, fed


def patiently(f):
    """Returns f(), with up to 20 attempts: many simultaneous connections may delay each other until they time out."""
    for attempt in range(20):
        try:
            return f()
        except tw.UnavailableError:
            if attempt == 19:
                raise
            time.sleep(0.2)


def client(cluster, task, kind, size):
    """Prints "ready", then answers each input line with the times of its steps during SECONDS."""
    runtime = tw.Runtime(threads=int(sys.argv[1]))
    with tw.Server(cluster, "worker", task, runtime=runtime) as server:
        graph, begin, total, fed = build(runtime, task, kind, size)
        with patiently(lambda: tw.Session(graph, target=server.address)) as session:
            if task == 0:
                patiently(lambda: session.run(begin))
            print("ready", flush=True)
            step = session.callable([total], list(fed))
            for _ in sys.stdin:
                found = patiently(lambda: step(*fed.values()))
                assert found == [SERVERS * (SERVERS + 1) / 2], found
                times, until = [], time.perf_counter() + SECONDS
                while not times or time.perf_counter() < until:
                    begun = time.perf_counter_ns()
                    step(*fed.values())
                    times.append(time.perf_counter_ns() - begun)
                print(*times, flush=True)


# ---- All of them ----

class Crowd:
    def __init__(self, kind, size):
        ports = [f"127.0.0.1:{port}" for port in free_ports(SERVERS + MOST_WORKERS)]
        self.cluster = json.dumps({"cluster": {"ps": ports[:SERVERS], "worker": ports[SERVERS:]}})
        self.kind, self.size, self.processes, self.clients = kind, size, [], []
        program = pathlib.Path(os.environ["THALWEG_LIBRARY"]).parent.parent / "bin/thalweg"
        for k in range(SERVERS):
            self.start([program, "worker", "--job", "ps", "--task", str(k), "--threads", "1"], {"TF_CONFIG": self.cluster})

    def start(self, command, environment):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        self.processes.append(process)
        if not process.stdout.readline():
            raise RuntimeError(f"'{' '.join(map(str, command))}' did not come up, it ended with {process.wait()}")
        return process

    def times(self, workers):
        """Starts missing workers, then lets all workers begin. Does not count the first step of each, which connects it."""
        while len(self.clients) < workers:
            words = [sys.executable, "-B", __file__, sys.argv[1], self.cluster, str(len(self.clients)), self.kind, str(self.size)]
            self.clients.append(self.start(words, {}))
        for process in self.clients[:workers]:
            process.stdin.write("\n")
            process.stdin.flush()
        found = sorted(int(t) for process in self.clients[:workers] for t in process.stdout.readline().split())
        return found[len(found) // 2], found[len(found) * 99 // 100]

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


crowds = {}


def step(argument):
    workers, kind, size = argument.split()
    if (kind, size) not in crowds:
        crowds[kind, size] = Crowd(kind, int(size))
    return crowds[kind, size].times(int(workers))


def stop(_):
    while crowds:
        crowds.popitem()[1].close()
    return [0]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        client(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
    else:
        try:
            worker.serve({"step": step, "stop": stop})
        finally:
            stop("")
