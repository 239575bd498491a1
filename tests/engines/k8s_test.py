"""Tests of the manifests of `thalweg launch --on k8s`: k8s_test.py THALWEG

A validator compares them with the published schemas. Then each pod's command line runs in namespaces of its own, with the names that the
headless Service would give, the environment and the files that a kubelet would make, and the probes of the manifest. No Kubernetes runs, and
no packet leaves the machine. It needs iproute2, the right to make namespaces, and tools/setup --engines; without them it is skipped."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import engine_tests
from engine_tests import skip

INSIDE = "THALWEG_K8S_TEST"


def enter():
    """Restarts this program in a network namespace of its own, with the Python that has the validator."""
    python = engine_tests.engines_python()
    if not python:
        skip("there is no validator; tools/setup --engines installs it")
    for tool in ("ip", "unshare", "nsenter"):
        if not shutil.which(tool):
            skip(f"there is no program `{tool}`")
    new = ["unshare", "-Urnmu", "--kill-child"]
    tried = subprocess.run([*new, "sh", "-c", "ip link add va type veth peer name vb && unshare -nmu mount --bind /etc/hosts /etc/hosts"],
                           capture_output=True, text=True)
    if tried.returncode:
        skip(f"namespaces are not permitted here: {tried.stderr.strip()}")
    os.execvpe("unshare", [*new, python, "-B", *sys.argv], {**os.environ, INSIDE: "1"})


if os.environ.get(INSIDE) != "1":
    enter()

import kubernetes_validate
import yaml

from engine_tests import digits, marked, none_stays, ran, same_losses
from running import run_tests

THALWEG = os.path.abspath(sys.argv[1])
SYSTEM_PYTHON = "/usr/bin/python3"
MOUNT = "/etc/thalweg"
BRIDGE = "10.78.0.1"


def printed(folder, *options, workers=2, ps=1, steps=60, save=20):
    """Returns the documents of a training of digits."""
    command = digits("thalweg", folder, on="k8s", workers=workers, ps=ps, steps=steps, save=save,
                     options=["--print", "--image", "registry/train:1", "--name", "digits", *options])
    command[command.index(sys.executable)] = SYSTEM_PYTHON
    command[0] = THALWEG
    return list(yaml.safe_load_all(ran(command).stdout))


def test_manifests_agree_with_the_published_schemas():
    with tempfile.TemporaryDirectory() as folder:
        for options in ([], ["--volume", "data=/data", "--volume", "more=/more", "--restart", "3"], ["--credentials", f"{folder}/keys"]):
            documents = printed(folder, *options)
            kinds = [d["kind"] for d in documents]
            assert kinds == ["Service", *(["Secret"] if "--credentials" in options else []), "StatefulSet", "Job"], kinds
            for document in documents:
                kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        wrong = {**documents[-1], "spec": {**documents[-1]["spec"], "completions": "two"}}
        with contextlib.suppress(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)
            raise AssertionError("the validator accepts anything")
        assert [d["kind"] for d in printed(folder, ps=0)] == ["Service", "Job"]


# ---- A kubelet's part ----

def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"`{' '.join(words)}`: {done.stderr.strip()}"


class Pod:
    """A pod of a StatefulSet or of an indexed Job: its namespaces, files, environment and process."""

    def __init__(self, number, owner, index, secret, hosts, folder):
        self.template, self.index = owner["spec"]["template"]["spec"], index
        self.hostname = f"{owner['metadata']['name']}-{index}"
        self.name = self.hostname if owner["kind"] == "StatefulSet" else f"{self.hostname}-x7k2p"
        self.ip, self.cable, self.process = f"10.78.0.{10 + number}", f"k{number}", None
        self.container, = self.template["containers"]
        self.hosts, self.folder = hosts, pathlib.Path(folder) / self.hostname
        self.said = open(pathlib.Path(folder) / f"{self.hostname}.log", "w+")
        self.environment = self.variables()
        self.mount(secret)

    def variables(self):
        fields = {"metadata.name": self.name, "metadata.annotations['batch.kubernetes.io/job-completion-index']": str(self.index)}
        given = {v["name"]: v["value"] if "value" in v else fields[v["valueFrom"]["fieldRef"]["fieldPath"]] for v in self.container["env"]}
        clean = {name: value for name, value in marked().items() if not name.startswith(("OMPI_", "SLURM_", "PMI"))}
        return {**clean, **given, "HOSTNAME": self.hostname, "PATH": f"{os.path.dirname(THALWEG)}:{clean['PATH']}"}

    def expanded(self, text):
        return re.sub(r"\$\((\w+)\)", lambda found: self.environment[found[1]], text)

    def mount(self, secret):
        """Writes the files of the secret that the pod sees: the volume's items beneath the container's subPathExpr."""
        volume = next(v["secret"] for v in self.template["volumes"] if v["name"] == "credentials")
        mount = next(m for m in self.container["volumeMounts"] if m["name"] == "credentials")
        assert mount["mountPath"] == MOUNT and volume["secretName"] == secret["metadata"]["name"]
        beneath = self.expanded(mount["subPathExpr"]) + "/"
        for item in volume["items"]:
            if item["path"].startswith(beneath):
                path = self.folder / item["path"][len(beneath):]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(engine_tests.decoded(secret["data"][item["key"]]))
                path.chmod(volume["defaultMode"])

    def words(self, command):
        return [self.expanded(word).replace(MOUNT, str(self.folder)) for word in command]

    def connect(self):
        inside = "mount --bind \"$0\" /etc/hosts && hostname \"$1\" && exec cat"
        self.holder = subprocess.Popen(["unshare", "-nmu", "sh", "-c", inside, str(self.hosts), self.hostname], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL)
        for _ in range(3000):
            if pathlib.Path(f"/proc/{self.holder.pid}/comm").read_text() == "cat\n":
                break
            time.sleep(0.01)
        else:
            raise AssertionError("no namespaces after 30 s")
        run("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        for words in (["addr", "add", f"{self.ip}/24", "dev", "eth0"], ["link", "set", "lo", "up"], ["link", "set", "eth0", "up"]):
            run(*self.within("ip", *words))
        run("ip", "link", "set", self.cable, "master", "br0")
        run("ip", "link", "set", self.cable, "up")

    def within(self, *words):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-m", "-u", *words]

    def start(self):
        self.process = subprocess.Popen(self.within(*self.words(self.container["command"])), env=self.environment, stdout=self.said,
                                        stderr=subprocess.STDOUT, start_new_session=True)

    def probe(self, name):
        """Returns whether the probe's command succeeds."""
        probe = self.container[name]
        done = subprocess.run(self.within(*self.words(probe["exec"]["command"])), env=self.environment, capture_output=True, text=True,
                              timeout=120)
        self.last = done.stdout + done.stderr
        return done.returncode == 0

    def until_started(self):
        until = time.monotonic() + 120
        while not self.probe("startupProbe"):
            assert self.process.poll() is None and time.monotonic() < until, (self.last, self.text())
            time.sleep(0.2)

    def kill(self):
        """kill -9 of all processes of the container, as the kubelet does when it evicts a pod."""
        for pid in engine_tests.living():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/uts") == os.readlink(f"/proc/{self.holder.pid}/ns/uts") and pid != self.holder.pid:
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def text(self):
        self.said.seek(0)
        return self.said.read()

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        subprocess.run(["ip", "link", "del", self.cable], capture_output=True)
        self.holder.stdin.close()
        self.holder.wait()
        self.said.close()


@contextlib.contextmanager
def pods(folder, **how):
    """Starts the pods of printed manifests, in any order: {host name: pod}."""
    work = pathlib.Path(folder)
    service, secret, *owners = printed(work / "run", "--credentials", work / "keys", **how)
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
    hosts, all = work / "hosts", []
    for owner in owners:
        n = owner["spec"]["replicas"] if owner["kind"] == "StatefulSet" else owner["spec"]["completions"]
        labels = owner["spec"]["template"]["metadata"]["labels"]
        assert all_in(service["spec"]["selector"], labels) and owner["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
        all += [Pod(len(all) + i, owner, i, secret, hosts, folder) for i in range(n)]
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{p.ip} {p.hostname}.{service['metadata']['name']}\n" for p in all))
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "br0", "type", "bridge")
    run("ip", "addr", "add", f"{BRIDGE}/24", "dev", "br0")
    run("ip", "link", "set", "br0", "up")
    connected = []
    try:
        for pod in all:
            pod.connect()
            connected.append(pod)
        yield {pod.hostname: pod for pod in all}
    finally:
        for pod in connected:
            pod.close()
        subprocess.run(["ip", "link", "del", "br0"], capture_output=True)


def all_in(part, whole):
    return all(whole.get(key) == value for key, value in part.items())


def finish(by_name):
    for name in ("digits-worker-0", "digits-worker-1"):
        assert by_name[name].process.wait(timeout=300) == 0, (name, by_name[name].text())
    server = by_name["digits-ps-0"]
    server.process.terminate()
    assert server.process.wait(timeout=60) == 0, server.text()


def test_each_pods_command_line_trains_with_the_losses_of_a_local_launch():
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        (pathlib.Path(there) / "run").mkdir()
        local = digits(THALWEG, here)
        local[local.index(sys.executable)] = SYSTEM_PYTHON
        ran(local)
        with pods(there) as by_name:
            server = by_name["digits-ps-0"]
            assert sorted(path.name for path in server.folder.iterdir()) == ["ps-0"]
            assert sorted(path.name for path in by_name["digits-worker-1"].folder.iterdir()) == ["client-worker-1", "worker-1"]
            server.start()
            server.until_started()
            assert "does not answer" not in server.last
            for name in ("digits-worker-1", "digits-worker-0"):
                by_name[name].start()
            by_name["digits-worker-0"].until_started()
            assert server.probe("readinessProbe") and server.probe("livenessProbe"), server.last
            finish(by_name)
            assert not server.probe("livenessProbe")
        same_losses(here, pathlib.Path(there) / "run", 60)
        none_stays()


def test_pods_that_are_killed_and_made_again_go_on_from_the_checkpoint():
    steps = 600
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        (pathlib.Path(there) / "run").mkdir()
        local = digits(THALWEG, here, steps=steps)
        local[local.index(sys.executable)] = SYSTEM_PYTHON
        ran(local)
        with pods(there, steps=steps) as by_name:
            for pod in by_name.values():
                pod.start()
            for name in ("digits-ps-0", "digits-worker-1"):
                until = time.monotonic() + 120
                saved = set((pathlib.Path(there) / "run/sync").glob("model.ckpt-*.index"))
                while not set((pathlib.Path(there) / "run/sync").glob("model.ckpt-*.index")) - saved:
                    assert time.monotonic() < until and by_name["digits-worker-0"].process.poll() is None, by_name["digits-worker-0"].text()
                    time.sleep(0.02)
                by_name[name].kill()
                by_name[name].start()
            finish(by_name)
        same_losses(here, pathlib.Path(there) / "run", steps, whole=False)
        none_stays()


if __name__ == "__main__":
    run_tests(globals(), sys.argv[2:])
