"""Tests of `thalweg launch --on ENGINE` without an engine: thalweg_launch_on_test.py PROGRAMS TRANSPORT

A program of this test stands in for mpirun and srun: it starts processes with the engine's variables. tests/engines has the real ones."""
import base64
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from thalweg_command import THALWEG, run

TRANSPORT = sys.argv[2]
OVER = ["--scheme", "unix", "--plugin", TRANSPORT]
NAMES = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "PMIX_SIZE", "SLURM_PROCID", "SLURM_NTASKS",
         "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_RESTART_COUNT", "JOB_COMPLETION_INDEX", "POD_NAME", "HOSTNAME", "TF_CONFIG",
         "THALWEG_TARGET", "THALWEG_CREDENTIALS"}
CLEAN = {name: value for name, value in os.environ.items() if name not in NAMES}

# Starts its processes, ends the others when one ends badly, and passes SIGTERM on, as mpirun and srun do.
ENGINE = f"""#!{sys.executable}
import os, signal, subprocess, sys
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
if words == ["--version"]:
    print("a stand-in")
    raise SystemExit
if name == "srun":
    n = int(words[0].split("=")[1])
    names = ("SLURM_PROCID", "SLURM_NTASKS")
else:
    assert words[0] == "-n", words
    n = int(words[1])
    names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
words = words[next(i for i, word in enumerate(words) if os.path.basename(word) == "thalweg"):]
left = int(os.environ.get("LEFT_OUT", "0"))
running = {{}}
def end(*_):
    for process in running.values():
        process.terminate()
signal.signal(signal.SIGTERM, end)
for rank in range(n - left):
    process = subprocess.Popen(words, env={{**os.environ, names[0]: str(rank), names[1]: str(n)}})
    running[process.pid] = process
status = 0
while running:
    pid, how = os.wait()
    process = running.pop(pid, None)
    code = os.waitstatus_to_exitcode(how)
    if process is not None and code != 0 and status == 0:
        status = code if code > 0 else 128 - code
        end()
raise SystemExit(status)
"""


def engines(folder):
    """Returns an environment whose PATH has the stand-ins first."""
    bin = pathlib.Path(folder) / "bin"
    bin.mkdir()
    for name in ("mpirun", "srun"):
        (bin / name).write_text(ENGINE)
        (bin / name).chmod(0o755)
    return {**CLEAN, "PATH": f"{bin}:{CLEAN['PATH']}"}


def launch(environment, *words, timeout=60, **more):
    return subprocess.run([str(THALWEG), "launch", *map(str, words)], env={**environment, **more}, capture_output=True, text=True,
                          timeout=timeout)


def left_in(folder):
    return [path.name for path in pathlib.Path(folder).iterdir() if path.name != "bin"]


# ---- A launch by mpirun and srun ----

def test_each_engine_runs_one_program_for_each_worker_and_removes_the_folder(folder):
    environment = engines(folder)
    for engine in ("mpi", "slurm"):
        done = launch(environment, "--on", engine, "-n", 2, "--ps", 1, "--shared", folder, *OVER, "--", "sh", "-c",
                      "echo $THALWEG_TARGET and $TF_CONFIG; echo said >&2")
        assert done.returncode == 0, done
        said = {}
        for line in done.stdout.splitlines():
            who, text = line.split("] ", 1)
            said.setdefault(who[1:], []).append(text)
        # The programs end at once, perhaps before all servers listen.
        assert {"client/0", "client/1"} <= said.keys() <= {"ps/0", "worker/0", "worker/1", "client/0", "client/1"}, done.stdout
        for worker in range(2):
            target, config = said[f"client/{worker}"][0].split(" and ", 1)
            config = json.loads(config)
            assert config["task"] == {"type": "worker", "index": worker} and target == config["cluster"]["worker"][worker], config
            assert len(config["cluster"]["ps"]) == 1 and len(config["cluster"]["worker"]) == 2, config
            assert said[f"client/{worker}"][1] == "said"
            assert said.get(f"worker/{worker}", [f"listening at {target}"]) == [f"listening at {target}"]
        assert left_in(folder) == []


def test_the_status_of_the_program_that_failed_is_passed_on_and_nothing_goes_on(folder):
    environment = engines(folder)
    done = launch(environment, "--on", "mpi", "-n", 2, "--ps", 1, "--shared", folder, *OVER, "--", "sh", "-c",
                  f"echo $$ >{folder}/bin/$$.pid; case $TF_CONFIG in *'\"index\": 1'*) exit 7;; esac; exec sleep 300")
    assert done.returncode == 7, done
    assert "client/1 ended with status 7" in done.stderr, done.stderr
    pids = [int(path.stem) for path in (pathlib.Path(folder) / "bin").glob("*.pid")]
    assert pids and not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids)
    assert left_in(folder) == []


def test_a_signal_to_launch_ends_all(folder):
    environment = engines(folder)
    command = [str(THALWEG), "launch", "--on", "slurm", "-n", "2", "--shared", folder, *OVER, "--", "sh", "-c",
               "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.05; done"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as launched:
        ready = 0
        while ready < 2:
            ready += "ready" in launched.stdout.readline()
        launched.send_signal(signal.SIGTERM)
        said = launched.stdout.read()
    assert said.count("told") == 2 and launched.returncode == 1, (said, launched.returncode)
    assert left_in(folder) == []


def test_half_a_cluster_is_named_within_its_bound(folder):
    began = time.monotonic()
    done = launch(engines(folder), "--on", "mpi", "-n", 2, "--ps", 1, "--shared", folder, "--meet-timeout", 0.5, *OVER, "--", "true",
                  LEFT_OUT="1")
    assert done.returncode == 1 and time.monotonic() - began < 20, done
    assert "only 2 of 3 processes came within 0.5 s; missing: worker/1 (rank 2)" in done.stderr, done.stderr
    assert left_in(folder) == []


def test_an_engine_that_is_not_there_is_named(folder):
    for engine, program in (("mpi", "mpirun"), ("slurm", "srun")):
        done = launch({**CLEAN, "PATH": "/nowhere"}, "--on", engine, "--", "true")
        assert done.returncode == 1 and f"--on {engine} needs the program '{program}', and none is on the PATH" in done.stderr, done
    for words, what in [(["--on", "pbs"], "--on takes local, mpi, slurm, ray or k8s, not 'pbs'"),
                        (["--on", "mpi", "--shared", f"{folder}/none"], "cannot make a folder in"),
                        (["--on", "k8s"], "--on k8s prints manifests"),
                        (["--on", "local", "--meet", folder], "--meet is for --on mpi and --on slurm"),
                        (["--on", "slurm", "--requeue", "1"], "--requeue is for launches inside of a job")]:
        other = pathlib.Path(folder) / words[1]
        other.mkdir()
        done = launch(engines(other), *words, "--", "true")
        assert done.returncode in (1, 2) and what in done.stderr, (words, done)


# ---- One of the processes ----

def ready(folder, *records):
    """Makes a folder to meet, with what other ranks have written."""
    meet = pathlib.Path(folder) / f"meet{len(list(pathlib.Path(folder).iterdir()))}"
    meet.mkdir(mode=0o700)
    for record in records:
        (meet / f"rank-{record['rank']}").write_text(json.dumps(record))
    return meet


RECORD = {"rank": 1, "size": 2, "ps": 0, "workers": 2, "host": "far", "place": "far", "address": "10.0.0.2", "port": 7, "version": "0"}


def refused(meet, *words, status=1, **environment):
    done = launch({**CLEAN, **environment}, "--on", "mpi", "--meet", meet, *OVER, *words, "--", "true")
    assert done.returncode == status and done.stdout == "", done
    return done.stderr


def test_the_rank_comes_from_the_variables_of_every_launcher(folder):
    """The size is always wrong, so the message has the size and the variable."""
    for variables in ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
                      {"PMI_RANK": "1", "PMI_SIZE": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
                      {"PMIX_RANK": "1", "SLURM_STEP_NUM_TASKS": "7", "SLURM_NTASKS": "9"},
                      {"SLURM_PROCID": "1", "SLURM_NTASKS": "7"}):
        said = refused(ready(folder), "-n", 2, **variables)
        assert f"the engine has started 7 processes ({list(variables)[0]}), and -n 2 --ps 0 are 2" in said, said
    assert "no engine has started this process: none of OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK, SLURM_PROCID is set" in refused(ready(folder))
    for variables, what in [({"PMI_RANK": "one", "PMI_SIZE": "2"}, "environment variable PMI_RANK is 'one', which is no number"),
                            ({"PMI_RANK": "2", "PMI_SIZE": "2"}, "PMI_RANK=2 and PMI_SIZE=2 contradict each other"),
                            ({"PMIX_RANK": "0"}, "PMIX_RANK is set and none with the number of processes is")]:
        said = refused(ready(folder), **variables)
        assert what in said, said


FIRST = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}


def test_versions_that_differ_are_named(folder):
    said = refused(ready(folder, RECORD), "-n", 2, **FIRST)
    assert re.search(r"worker/1 \(rank 1\) on host far runs thalweg 0, and rank 0 on host \S+ runs \d+\.\d+.*install one version", said), said


def test_other_ranks_hear_why_rank_0_refused_them(folder):
    meet = ready(folder)
    (meet / "refused").write_text("the reason")
    said = refused(meet, "-n", 2, OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2")
    assert said == "thalweg launch: the reason\n", said


def test_other_numbers_and_other_machines_are_refused(folder):
    version = re.search(r"runs (\d\S*, plugin ABI draft \d+);", refused(ready(folder, RECORD), "-n", 2, **FIRST)).group(1)
    record = {**RECORD, "version": version}
    said = refused(ready(folder, {**record, "workers": 3}), "-n", 2, **FIRST)
    assert "worker/1 (rank 1) was started with another number of processes, servers or workers" in said, said
    said = refused(ready(folder, record), "-n", 2, **FIRST)
    assert "--scheme unix reaches the processes of one machine" in said, said


def test_a_folder_that_does_not_serve_is_refused(folder):
    meet = ready(folder)
    said = refused(meet / "none", **FIRST)
    assert "No such file or directory; it must be on a file system that all hosts share" in said, said
    meet.chmod(0o770)
    assert "is not this user's alone, and the cluster's keys are written there; chmod 700" in refused(meet, **FIRST)
    used = ready(folder, {**RECORD, "rank": 0})
    assert "was used by an earlier start: it has rank-0 already" in refused(used, "-n", 2, **FIRST)
    said = refused(ready(folder), "-n", 2, "--interface", "none0", **FIRST)
    assert "--interface: 'none0' has no IP address on host" in said and "lo (127.0.0.1)" in said, said


# ---- Commands and manifests ----

def test_the_command_of_each_engine_is_printed(folder):
    common = f"{THALWEG.resolve()} launch --on"
    said = run("launch", "--on", "slurm", "--print", "-n", 2, "--ps", 1, "--engine-option=--nodes=2", "--restart", 3, "--threads", 1, "--",
               "python3", "a b.py", "it's")
    assert said == f"srun --ntasks=3 --kill-on-bad-exit=1 --export=ALL --nodes=2 {common} slurm --meet FOLDER -n 2 --ps 1 --restart 3 " \
                   "--threads 1 -- python3 'a b.py' 'it'\\''s'\n", said
    said = run("launch", "--on", "mpi", "--print", "-n", 3, "--", "true", environment=engines(folder))
    assert said == f"mpirun -n 3 {common} mpi --meet FOLDER -n 3 -- true\n", said
    said = run("launch", "--on", "ray", "--print", "-n", 3, "--ps", 1, "--restart", 2, "--", "true")
    assert said == "python3 -m thalweg.ray_programs -n 3 --ps 1 --restart 2 -- true\n", said


MANIFESTS = ["launch", "--on", "k8s", "--print", "-n", 2, "--ps", 1, "--image", "registry/train:1", "--name", "digits"]


def test_manifests_have_names_that_the_cluster_uses(folder):
    said = run(*MANIFESTS, "--restart", 4, "--volume", "data=/data", "--allow", "/data", "--", "python3", "/train.py")
    assert re.findall(r'^kind: "(\w+)"$', said, re.M) == ["Service", "StatefulSet", "Job"]
    assert said.startswith("# The Secret 'digits-credentials' is printed too with --credentials DIR.\n---\n"), said
    configs = [json.loads(json.loads(line.split("value: ", 1)[1])) for line in said.splitlines() if "value: " in line]
    assert configs == 2 * [{"cluster": {"ps": ["digits-ps-0.digits:7000"],
                                        "worker": ["digits-worker-0.digits:7000", "digits-worker-1.digits:7000"]}}], configs
    for line in ("serviceName: \"digits\"", "clusterIP: \"None\"", "completionMode: \"Indexed\"", "completions: 2", "backoffLimit: 4",
                 "claimName: \"data\"", "mountPath: \"/data\"", "defaultMode: 256", "publishNotReadyAddresses: true"):
        assert re.search(f"^ *(- )?{re.escape(line)}$", said, re.M), line
    assert said.count("exec thalweg cluster status --timeout 5") == 6
    for words, what in [(["--name", "Digits"], "--name takes at most 40 lower-case letters"), (["--volume", "data"], "--volume takes CLAIM=PATH"),
                        (["--name", "a-"], "--name takes at most 40")]:
        assert what in run(*MANIFESTS, *words, "--", "true", status=2)
    assert "--on k8s needs --image" in run("launch", "--on", "k8s", "--print", "--", "true", status=2)


def secret(text):
    """Returns the data of the Secret in printed manifests."""
    part, = (part for part in text.split("---\n") if 'kind: "Secret"' in part)
    return {name: base64.b64decode(value, validate=True) for name, value in re.findall(r'^  ([\w.-]+): "([^"]*)"$', part.split("\ndata:\n")[1], re.M)}


def test_the_secret_has_every_members_credentials_and_not_the_authoritys_key(folder):
    keys = pathlib.Path(folder) / "keys"
    done = subprocess.run([str(THALWEG), *map(str, MANIFESTS), "--credentials", str(keys), "--", "true"], capture_output=True, text=True)
    if "this build has no thalweg-credentials" in done.stderr:
        return print("  left out: this build makes no credentials")
    assert done.returncode == 0, done
    found = secret(done.stdout)
    members = ["ps-0", "worker-0", "client-worker-0", "worker-1", "client-worker-1"]
    assert found == {f"{m}.{name}": (keys / m / name).read_bytes() for m in members for name in ("ca.pem", "cert.pem", "key.pem", "token")}
    assert (keys / "authority/key.pem").read_bytes() not in found.values()
    again = run(*MANIFESTS, "--credentials", keys, "--", "true")
    assert secret(again) == found  # the same ones again
    said = run(*MANIFESTS[:-1], "digits", "--ps", 2, "--credentials", keys, "--", "true", status=1)
    assert "ps-1/ca.pem' is missing: the folder was made for another cluster" in said, said


# ---- One task ----

def test_a_task_takes_its_index_from_the_pod(folder):
    cluster = {"cluster": {job: [f"unix:on-{os.getpid()}-{job}-{i}" for i in range(2)] for job in ("ps", "worker")}}
    environment = {**CLEAN, "TF_CONFIG": json.dumps(cluster)}
    for more, task in [({"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "digits-worker-0"}, "worker"), ({"POD_NAME": "digits-worker-1"}, "worker"),
                       ({"HOSTNAME": "digits-worker-1"}, "worker"), ({}, "worker/1")]:
        done = launch(environment, "--on", "k8s", "--task", task, "--plugin", TRANSPORT, "--", "sh", "-c", "echo $THALWEG_TARGET; exit 5", **more)
        address = cluster["cluster"]["worker"][1]
        assert done.returncode == 5 and f"[client/1] {address}\n" in done.stdout, done
    with subprocess.Popen([str(THALWEG), "launch", "--task", "ps", "--plugin", TRANSPORT], env={**environment, "POD_NAME": "digits-ps-1"},
                          stdout=subprocess.PIPE, text=True) as server:
        line = server.stdout.readline()
        server.terminate()
    assert line == f"listening at {cluster['cluster']['ps'][1]}\n" and server.returncode == 0, (line, server.returncode)
    for words, more, what in [(["--task", "worker/2"], {}, "the cluster has no task 'worker/2'"),
                              (["--task", "chief/0"], {}, "the cluster has no task 'chief/0'"),
                              (["--task", "ps/0"], {}, "task 'ps/0' is no worker"),
                              (["--task", "ps/x"], {}, "--task takes JOB/INDEX or JOB"),
                              (["--task", "worker"], {}, "the index of this task is not known"),
                              (["--task", "worker"], {"POD_NAME": "digits"}, "which does not end with the task's index")]:
        done = launch(environment, *words, "--", "true", **more)
        assert done.returncode in (1, 2) and what in done.stderr, (words, done)


if __name__ == "__main__":
    from thalweg_command import run_tests
    sys.exit(run_tests(globals()))
