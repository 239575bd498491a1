"""Tests `thalweg cluster` with several processes: cluster_command_test.py THALWEG TRANSPORT"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import thalweg as tw

THALWEG, TRANSPORT = sys.argv[1:3]
tw.load_plugin(TRANSPORT)


def start(file, job, task):
    process = subprocess.Popen([THALWEG, "worker", "--plugin", TRANSPORT, "--cluster", str(file), "--job", job, "--task", str(task),
                                "--threads", "1"], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("listening at ")
    return process


def cluster(*words, file, expect=0):
    done = subprocess.run([THALWEG, "cluster", *words, "--plugin", TRANSPORT, "--cluster", str(file)], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def graph_of(ps, worker):
    graph = tw.Graph()
    with graph:
        with tw.device(ps):
            queue = tw.ops.fifo_queue_v2(component_types=[np.float32])
            element = tw.ops.queue_dequeue_v2(queue, component_types=[np.float32])[0]
            put = tw.ops.queue_enqueue_v2(queue, [tw.constant(np.float32(3))])
            big = tw.ops.fill([1000], tw.constant(np.float32(1)))
        with tw.device(worker):
            waits, moved = tw.ops.neg(element), tw.ops.neg(big)
    return graph, put, waits, moved


def main():
    with tempfile.TemporaryDirectory() as folder:
        file, name = pathlib.Path(folder) / "cluster.json", f"c{os.getpid()}"
        file.write_text(json.dumps({"ps": [f"unix:{name}-ps"], "worker": [f"unix:{name}-w0"]}))
        processes = {("ps", 0): start(file, "ps", 0), ("worker", 0): start(file, "worker", 0)}
        try:
            check(file, name, processes)
        finally:
            for process in processes.values():
                process.kill()
                process.wait()
                process.stdout.close()


def check_reset(file, name):
    with tw.Graph() as graph:
        with tw.device("/job:ps/task:0"):
            first = tw.Variable(1.0, name="first")
        with tw.device("/job:worker/task:0"):
            second = tw.Variable(2.0, name="second")
    with tw.Session(graph, target=f"unix:{name}-w0") as session, tw.Session(graph, target=f"unix:{name}-ps", container="kept") as kept:
        for s in (session, kept):
            s.run(graph.initializer())
        text = cluster("reset", "--container", "localhost", file=file)
        assert "container 'localhost' is empty on all tasks; it held 3" in text, text  # including the queue that was made before
        for v in (first, second):
            try:
                session.run(v)
                raise AssertionError("the variable is still there")
            except tw.FailedPreconditionError:
                pass
        assert kept.run(second) == 2
        assert tw.cluster_reset(f"unix:{name}-w0", "kept") == 2
    assert "reset needs --container NAME" in cluster("reset", file=file, expect=2)


def check(file, name, processes):
    assert "all 2 tasks answer, run one version, and move" in cluster("doctor", file=file)
    graph, put, waits, moved = graph_of("/job:ps/task:0", "/job:worker/task:0")
    with tw.Session(graph, target=f"unix:{name}-w0") as session:
        for _ in range(5):
            session.run(moved)
        # The status shows sizes, incarnations and the traffic between tasks.
        text = cluster("status", file=file)
        assert "worker:0" in text and f"unix:{name}-ps" in text and "TO" in text, text
        tasks = json.loads(cluster("status", "--json", file=file))["tasks"]
        assert [t["error"] for t in tasks] == ["", ""] and tasks[0]["incarnation"] != tasks[1]["incarnation"], tasks
        worker = next(t for t in tasks if t["job"] == "worker")
        assert worker["steps"] == 5 and worker["memory_bytes"] > 1e6 and worker["sandbox"] == "", worker
        received = {r["from"]: r for r in worker["received"]}
        assert received[f"task /job:ps/task:0 at unix:{name}-ps"]["bytes"] == 5 * 4000, received
        assert tw.cluster_status(f"unix:{name}-ps")[0]["version"] == tw.version()
        # The status shows which task waits for which.
        thread = threading.Thread(target=lambda: session.run(waits))
        thread.start()
        for _ in range(100):
            text = cluster("status", file=file)
            if "worker:0 waits for ps:0, which is in its operations" in text:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(text)
        time.sleep(0.1)
        assert "has come no further for" in cluster("doctor", "--stuck", "0.01", file=file, expect=1)
        session.run(put)
        thread.join()
        text = cluster("top", "--interval", "0.2", "--count", "2", file=file)
        assert text.count("STEPS/S") == 2 and "worker:0" in text, text
    check_reset(file, name)
    processes["ps", 0].send_signal(signal.SIGKILL)
    processes["ps", 0].wait()
    text = cluster("doctor", file=file, expect=1)
    assert f"task /job:ps/task:0 at unix:{name}-ps cannot be reached" in text, text
    assert "cannot be reached" in cluster("status", "--target", f"unix:{name}-nobody", "--timeout", "1", file=file, expect=1)
    cluster("sing", file=file, expect=2)


main()
