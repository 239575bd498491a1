"""Clusters of processes on this machine for tests, which can start, kill and restart each process."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import thalweg as tw
from addresses import new_address


class LocalCluster:
    """Parameter servers and workers, each a process that may read and write files below `folder`. jobs: {job: number of tasks}; None: those
    of ps and workers. limits: {(job, task): function that the process calls before it begins}. addresses: function that makes the address of a task; None: addresses of the transport. membership:
    the entry of the cluster's JSON."""
    count = 0

    def __init__(self, program, transport, folder, ps=2, workers=1, limits=None, addresses=None, membership=None, jobs=None):
        LocalCluster.count += 1
        self.program, self.transport, self.folder, self.limits = program, transport, pathlib.Path(folder), limits or {}
        make = addresses or (lambda: new_address(transport))
        self.address = {job: [make() for _ in range(n)] for job, n in (jobs or {"ps": ps, "worker": workers}).items()}
        self.file = self.folder / f"cluster-{os.getpid()}-{LocalCluster.count}.json"
        self.file.write_text(json.dumps({"cluster": self.address, "membership": membership} if membership else self.address))
        self.processes = {}
        for job, addresses in self.address.items():
            for task in range(len(addresses)):
                self.start(job, task)

    def start(self, job, task, **environment):
        """Starts a task. environment: variables in addition to our own."""
        process = subprocess.Popen([self.program, "worker", "--plugin", self.transport, "--cluster", str(self.file), "--job", job, "--task",
                                    str(task), "--threads", "1", "--server-option", f"allow_files={self.folder}"],
                                   stdout=subprocess.PIPE, text=True, env={**os.environ, **environment},
                                   preexec_fn=self.limits.get((job, task)))
        self.processes[job, task] = process
        line = process.stdout.readline()
        assert line == f"listening at {self.address[job][task]}\n", line

    def kill(self, job, task, how=signal.SIGKILL):
        process = self.processes[job, task]
        process.send_signal(how)
        process.wait()
        process.stdout.close()

    def session(self, graph, **options):
        return tw.Session(graph, target=self.address["worker"][0], **options)

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
            process.stdout.close()


@contextlib.contextmanager
def local_cluster(program, transport, **how):
    with tempfile.TemporaryDirectory() as folder:
        cluster = LocalCluster(program, transport, folder, **how)
        try:
            yield cluster
        finally:
            cluster.close()
