"""Tests of `thalweg launch --on mpi` with a real mpirun, over gRPC with certificates: mpi_test.py THALWEG
Skipped without Open MPI (tools/setup --engines)."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from engine_tests import DATA, EXAMPLE, SOURCE, digits, living, marked, none_stays, ran, same_losses, skip
from running import run_tests

THALWEG = sys.argv[1]
if not shutil.which("mpirun"):
    skip("there is no mpirun; tools/setup --engines installs it")
OPEN_MPI = ["--engine-option=--oversubscribe"]
# Open MPI refuses to run for root unless both are set.
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def mpi(folder, *options, **how):
    return digits(THALWEG, folder, on="mpi", options=[*OPEN_MPI, "--shared", folder, *options], **how)


def hidden(folder):
    return [path.name for path in pathlib.Path(folder).iterdir() if path.name.startswith(".thalweg")]


def test_one_program_has_the_same_losses_as_in_a_local_launch():
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        ran(digits(THALWEG, here))
        done = ran(mpi(there))
        same_losses(here, there, 60)
        prefixes = {line.split("]")[0] for line in done.stdout.splitlines()}
        assert prefixes == {"[ps/0", "[worker/0", "[worker/1", "[client/0", "[client/1"}, done.stdout
        assert hidden(there) == []
        none_stays()


def test_the_command_of_the_readme_trains():
    line, = (line for line in (SOURCE / "README.md").read_text().splitlines() if line.startswith("    thalweg launch --on "))
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        shutil.copy(EXAMPLE, work / "digits.py")
        shutil.copy(DATA, work / "digits.csv")
        (work / "bin").mkdir()
        (work / "bin/python3").symlink_to(sys.executable)
        path = f"{work}/bin:{os.path.dirname(os.path.abspath(THALWEG))}:{os.environ['PATH']}"
        # This machine may have fewer processors than the command has processes.
        done = ran(line.split(), environment={**os.environ, "PATH": path, "OMPI_MCA_rmaps_base_oversubscribe": "1"}, cwd=folder)
        accuracy = float(done.stdout.split("[client/0] accuracy ")[1].split()[0])
        assert accuracy > 0.8, done.stdout
        none_stays()


def test_the_status_of_a_program_that_fails_is_passed_on():
    with tempfile.TemporaryDirectory() as folder:
        command = [THALWEG, "launch", "--on", "mpi", *OPEN_MPI, "-n", "2", "--ps", "1", "--shared", folder, "--", "sh", "-c",
                   "case $TF_CONFIG in *'\"index\": 1'*) exit 7;; esac; sleep 300"]
        done = ran(command, status=7)
        assert "client/1 ended with status 7" in done.stderr, done.stderr
        assert hidden(folder) == []
        none_stays()


def test_a_process_that_mpirun_loses_ends_all_within_its_bound():
    """kill -9 of a rank, its server and its program; mpirun notices it, and nothing stays."""
    with tempfile.TemporaryDirectory() as folder:
        command = [THALWEG, "launch", "--on", "mpi", *OPEN_MPI, "-n", "2", "--shared", folder, "--", "sh", "-c", "echo ready; exec sleep 300"]
        with subprocess.Popen(command, env=marked(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as launched:
            ready = 0
            while ready < 2:
                ready += "ready" in launched.stdout.readline()
            ranks = [pid for pid, words in living().items() if "launch --on mpi --meet" in words and "mpirun" not in words]
            assert len(ranks) == 2, living()
            began = time.monotonic()
            os.kill(ranks[0], signal.SIGKILL)
            _, error = launched.communicate(timeout=60)
        assert launched.returncode == 128 + signal.SIGKILL and time.monotonic() - began < 40, (launched.returncode, error)
        assert hidden(folder) == []
        none_stays()


def test_a_signal_to_launch_ends_all():
    with tempfile.TemporaryDirectory() as folder:
        command = [THALWEG, "launch", "--on", "mpi", *OPEN_MPI, "-n", "2", "--ps", "1", "--shared", folder, "--", "sh", "-c",
                   "echo ready; exec sleep 300"]
        with subprocess.Popen(command, env=marked(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as launched:
            ready = 0
            while ready < 2:
                ready += "ready" in launched.stdout.readline()
            launched.send_signal(signal.SIGTERM)
            launched.communicate(timeout=60)
        assert launched.returncode == 1, launched.returncode
        assert hidden(folder) == []
        none_stays()


def test_credentials_that_are_lost_are_an_error_that_names_them():
    """The keys go away after the cluster was made and before the servers read them: the first rank's server is replaced by none."""
    with tempfile.TemporaryDirectory() as folder:
        command = [THALWEG, "launch", "--on", "mpi", *OPEN_MPI, "-n", "1", "--ps", "1", "--restart", "1", "--shared", folder, "--", "sh", "-c",
                   f"rm -r {folder}/.thalweg-*/keys; kill -9 $(pgrep -f '[w]orker.*--credentials {folder}/.*/worker-0'); sleep 300"]
        done = ran(command, status=1, timeout=120)
        assert "/keys/worker-0/ca.pem': No such file or directory" in done.stdout + done.stderr, done
        none_stays()


if __name__ == "__main__":
    run_tests(globals(), sys.argv[2:])
