"""Tests of `thalweg launch --on slurm` with real daemons: slurm_test.py THALWEG

The test starts munged, slurmctld and slurmd as its own user, in a folder of its own, on ports of its own: one node, whose processors are as
many as the configuration says. Skipped without Slurm (tools/setup --engines)."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from engine_tests import digits, living, losses, none_stays, ran, same_losses, skip
from addresses import free_port
from running import run_tests

THALWEG = sys.argv[1]
os.environ["PATH"] += ":/usr/sbin"
for program in ("munged", "slurmctld", "slurmd", "srun", "sbatch"):
    if not shutil.which(program):
        skip(f"there is no program `{program}`; tools/setup --engines installs it")

# As the daemons are this user's, tasks need no cgroups; a process group is what the engine signals.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=requeue_delay=0,sched_interval=2
JobRequeue=1
KillWait=15
MinJobAge=300
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """The daemons, until close. environment: for srun, sbatch and scancel."""

    def __init__(self, folder):
        self.folder, self.processes = pathlib.Path(folder), []
        user, host = subprocess.check_output(["id", "-un"], text=True).strip(), socket.gethostname().split(".")[0]
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)  # munged refuses a socket in a folder that others cannot enter
        (self.folder / "munge.key").write_bytes(os.urandom(128))
        (self.folder / "munge.key").chmod(0o400)
        file = self.folder / "slurm.conf"
        file.write_text(CONFIGURATION.format(folder=self.folder, user=user, host=host, controller=free_port(), node=free_port()))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI"))}
        self.environment = {**clean, "SLURM_CONF": str(file)}
        self.start("munged", "--foreground", f"--key-file={self.folder}/munge.key", f"--socket={self.folder}/munge.socket",
                   f"--pid-file={self.folder}/munge.pid", f"--log-file={self.folder}/munge.log", f"--seed-file={self.folder}/munge.seed",
                   "--force")
        self.until("munged", lambda: (self.folder / "munge.socket").exists())
        self.start("slurmctld", "-D", "-f", str(file))
        self.start("slurmd", "-D", "-f", str(file), "-N", host)
        self.until("a node that is idle", lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"))

    def start(self, *words):
        log = open(self.folder / f"{words[0]}.said", "w")
        self.processes.append(subprocess.Popen(words, env=self.environment, stdout=log, stderr=subprocess.STDOUT))
        log.close()

    def ask(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60).stdout.strip()

    def until(self, what, true, seconds=180):
        until = time.monotonic() + seconds
        while not true():
            if time.monotonic() > until or any(p.poll() is not None for p in self.processes):
                said = "".join(f"--- {path.name}\n{path.read_text()[-1500:]}" for path in self.folder.glob("*.said"))
                raise AssertionError(f"no {what}: {said}")
            time.sleep(0.1)

    def state(self, job):
        lines = self.ask("scontrol", "show", "job", job)
        return dict(word.split("=", 1) for word in lines.split() if "=" in word)

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def slurm():
    with tempfile.TemporaryDirectory() as folder:
        cluster = Slurm(folder)
        try:
            yield cluster
        finally:
            cluster.close()


def on_slurm(folder, *options, **how):
    return digits(THALWEG, folder, on="slurm", options=["--shared", folder, *options], **how)


def batch(cluster, folder, command, *options):
    """Submits a script that runs the command; returns the number of the job."""
    script = pathlib.Path(folder) / "job.sh"
    script.write_text("#!/bin/sh\n" + " ".join(f"'{word}'" for word in command) + "\n")
    words = ["sbatch", "--parsable", "--requeue", "--open-mode=append", f"--output={folder}/said", "--ntasks=3", f"--chdir={folder}", *options,
             str(script)]
    return ran(words, environment=cluster.environment).stdout.strip()


def said(folder):
    path = pathlib.Path(folder) / "said"
    return path.read_text() if path.exists() else ""


def test_a_launch_is_a_job_step_with_the_losses_of_a_local_launch():
    with slurm() as cluster, tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        ran(digits(THALWEG, here), environment=cluster.environment)
        done = ran(on_slurm(there), environment=cluster.environment)
        same_losses(here, there, 60)
        assert {line.split("]")[0] for line in done.stdout.splitlines()} == {"[ps/0", "[worker/0", "[worker/1", "[client/0", "[client/1"}, done
        command = [THALWEG, "launch", "--on", "slurm", "-n", "2", "--shared", there, "--", "sh", "-c",
                   "case $TF_CONFIG in *'\"index\": 1'*) exit 7;; esac; sleep 300"]
        done = ran(command, environment=cluster.environment, status=7)
        assert "client/1 ended with status 7" in done.stderr, done.stderr
        # With pmi2 the ranks have both sets of variables.
        ran([THALWEG, "launch", "--on", "slurm", "-n", "2", "--engine-option=--mpi=pmi2", "--shared", there, "--", "true"],
            environment=cluster.environment)
        assert not [path for path in pathlib.Path(there).iterdir() if path.name.startswith(".thalweg")]


def test_a_job_whose_task_is_killed_goes_back_into_the_queue_and_on_from_its_checkpoint():
    steps = 400
    with slurm() as cluster, tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        ran(digits(THALWEG, here, steps=steps), environment=cluster.environment)
        job = batch(cluster, there, on_slurm(there, "--requeue", 2, steps=steps))
        checkpoints = pathlib.Path(there) / "sync"
        cluster.until("checkpoint", lambda: any(checkpoints.glob("model.ckpt-*.index")))
        ranks = [pid for pid, words in living().items() if "--meet" in words and "srun" not in words]
        assert len(ranks) == 3, living()
        os.kill(ranks[1], signal.SIGKILL)
        cluster.until("end of the job", lambda: cluster.state(job).get("JobState") in ("COMPLETED", "FAILED", "TIMEOUT"), seconds=400)
        state = cluster.state(job)
        assert state["JobState"] == "COMPLETED" and state["Restarts"] == "1", (state, said(there))
        assert f"putting job {job} back into the queue" in said(there), said(there)
        same_losses(here, there, steps, whole=False)
        # It went on: the second start did not make the steps before the checkpoint again.
        assert min(losses(there, 0)) >= 20, sorted(losses(there, 0))[:3]


def test_scancel_ends_all_and_puts_nothing_back():
    with slurm() as cluster, tempfile.TemporaryDirectory() as folder:
        before = set(living())
        job = batch(cluster, folder, [THALWEG, "launch", "--on", "slurm", "-n", "2", "--ps", "1", "--requeue", "2", "--shared", folder, "--", "sh", "-c",
                                      "echo ready; exec sleep 300"])
        cluster.until("programs", lambda: said(folder).count("ready") == 2)
        assert len(set(living()) - before) > 3
        cluster.ask("scancel", job)
        cluster.until("end of the job", lambda: cluster.state(job).get("JobState") == "CANCELLED")
        none_stays(60, but=before)
        assert cluster.state(job)["Restarts"] == "0"


if __name__ == "__main__":
    run_tests(globals(), sys.argv[2:])
