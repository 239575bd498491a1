"""Training on a Ray cluster: tasks are actors of a placement group. Ray restarts those that die, and the cluster takes them in again.

    def fn(worker):
        graph, loss, sync = model(worker)
        with tw.Session(graph, target=worker.target) as session:
            training = tw.SyncTraining(session, sync, worker.folder, chief=worker.index == 0)
            for step, value in training.run(1000, loss, batch):
                worker.report(step, loss=float(value))

    result = thalweg.ray.Trainer(fn, workers=4, ps=1).fit()

A restarted task has a new incarnation at its old address: steps of others that used the old one fail, and tw.SyncTraining repeats them.
`thalweg launch --on ray` runs a program for each worker instead (ray_programs)."""
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, Optional

from .runtime import load_plugin, version
from .saver import latest_checkpoint
from .server import Server

_Keys = dict[str, dict[str, bytes]]  # member: file: contents


@dataclasses.dataclass
class Worker:
    """What a worker's function gets. cluster: jobs with the addresses of their tasks.   target: of this worker, for tw.Session.
    folder: for checkpoints, in the results; all tasks may write there."""
    index: int
    workers: int
    cluster: dict[str, list[str]]
    target: str
    folder: str
    results: str

    def report(self, step: int, **metrics: Any) -> None:
        """Appends the metrics of a step to the results; only worker 0 does. A step that is repeated after a failure is reported again."""
        if self.index == 0:
            record = {"training_iteration": step, "timestamp": int(time.time()), "hostname": socket.gethostname(), "pid": os.getpid(), **metrics}
            with open(pathlib.Path(self.results) / "result.json", "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


@dataclasses.dataclass
class Result:
    """values: what the function returned, by worker.   history: the metrics of each step, as last reported.   path: the folder of the
    results, as Ray lays it out: result.json, params.json, checkpoint_000000.   checkpoint: the latest; None if there is none.
    restarts: how often actors were restarted."""
    values: list[Any]
    history: list[dict[str, Any]]
    path: str
    checkpoint: Optional[str]
    restarts: int

    @property
    def metrics(self) -> dict[str, Any]:
        """Those of the last step."""
        return self.history[-1] if self.history else {}


class _Task:
    """An actor: one task of the cluster, and the program of a worker."""

    def __init__(self, job: str, index: int, plugins: Sequence[str], runtime_options: Sequence[str]):
        self.job, self.index, self.plugins = job, index, plugins
        if runtime_options:
            os.environ["THALWEG_OPTIONS"] = ";".join(runtime_options)
        self.server: Optional[Server] = None

    def place(self) -> dict[str, Any]:
        """Where this actor is, and what it runs."""
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
        import ray
        return {"ip": ray.util.get_node_ip_address(), "port": port, "version": version(), "pid": os.getpid()}

    def serve(self, cluster: dict[str, list[str]], keys: _Keys, options: dict[str, Any]) -> None:
        for plugin in self.plugins:
            load_plugin(plugin)
        self.cluster = cluster
        if keys:
            folder = tempfile.mkdtemp(prefix="thalweg-")
            for member, files in keys.items():
                for name, data in files.items():
                    path = pathlib.Path(folder, member, name)
                    path.parent.mkdir(mode=0o700, exist_ok=True)
                    path.touch(mode=0o600)
                    path.write_bytes(data)
            options = {**options, "credentials": f"{folder}/{self.job}-{self.index}"}
            os.environ["THALWEG_CREDENTIALS"] = f"{folder}/client-{self.job}-{self.index}"
        self.server = Server({"cluster": cluster}, self.job, self.index, **options)

    def hold(self) -> None:
        assert self.server
        self.server.join()

    def run(self, fn: Callable[[Worker], Any], results: str, folder: str) -> Any:
        target = self.cluster[self.job][self.index]
        os.environ["TF_CONFIG"] = json.dumps({"cluster": self.cluster, "task": {"type": self.job, "index": self.index}})
        os.environ["THALWEG_TARGET"] = target
        return fn(Worker(self.index, len(self.cluster["worker"]), self.cluster, target, folder, results))


class _Moved(Exception):
    """A task was restarted at another address."""


@dataclasses.dataclass
class _Member:
    job: str
    index: int
    actor: Any
    place: dict[str, Any] = dataclasses.field(default_factory=dict)
    deaths: int = 0


class Trainer:
    """Runs `fn` in each worker.

    fn: gets a Worker; must be picklable.   workers, ps: tasks of each job.   name: of the results; None: from the time.   storage: folder
    of results, which all nodes share; None: ~/ray_results.   resources: of each actor.   max_restarts: how often Ray restarts an actor.
    timeout: seconds in which actors have to be placed, or to be back.   plugins: that tasks load.   options: of the servers.
    runtime_options: "key=value" texts.   secure: with certificates; None: if there are several nodes."""

    def __init__(self, fn: Callable[[Worker], Any], *, workers: int = 1, ps: int = 0, name: Optional[str] = None, storage: Optional[str] = None,
                 resources: Optional[dict[str, float]] = None, max_restarts: int = 3, timeout: float = 120, plugins: Sequence[str] = (),
                 options: Optional[dict[str, Any]] = None, runtime_options: Sequence[str] = (), secure: Optional[bool] = None):
        if workers < 1 or ps < 0 or max_restarts < 0:
            raise ValueError(f"thalweg.ray.Trainer: workers is {workers}, ps {ps}, max_restarts {max_restarts}; at least one worker is needed")
        self.fn, self.counts, self.resources = fn, {"ps": ps, "worker": workers}, resources or {"CPU": 1}
        self.results = pathlib.Path(storage or "~/ray_results").expanduser().absolute() / (name or time.strftime("thalweg_%Y-%m-%d_%H-%M-%S"))
        self.folder = self.results / "checkpoint_000000"
        self.max_restarts, self.timeout, self.plugins, self.runtime_options, self.secure = max_restarts, timeout, plugins, runtime_options, secure
        self.options = {"allow_files": str(self.folder), **(options or {})}
        self.restarts = 0

    def fit(self) -> Result:
        """Trains. Raises the error of a function that failed; RuntimeError if actors cannot be placed, or die more often than allowed."""
        try:
            import ray
        except ImportError as e:
            raise ImportError(f"thalweg.ray needs Ray, and it cannot be imported ({e}); pip install ray") from None
        if not ray.is_initialized():
            ray.init(log_to_driver=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.results / "params.json").write_text(json.dumps({**self.counts, "max_restarts": self.max_restarts}))
        while True:
            members: list[_Member] = []
            group = ray.util.placement_group([dict(self.resources) for _ in range(sum(self.counts.values()))], strategy="PACK")
            try:
                values = self._attempt(ray, group, members)
                return Result(values, self._history(), str(self.results), latest_checkpoint(self.folder), self.restarts)
            except _Moved:
                continue  # all begin again from the checkpoint, at their new addresses
            finally:
                for m in members:
                    ray.kill(m.actor, no_restart=True)
                ray.util.remove_placement_group(group)

    def _attempt(self, ray: Any, group: Any, members: list[_Member]) -> list[Any]:
        try:
            ray.get(group.ready(), timeout=self.timeout)
        except ray.exceptions.GetTimeoutError:
            raise RuntimeError(f"thalweg.ray.Trainer: Ray has not placed {sum(self.counts.values())} actors of {self.resources} within "
                               f"{self.timeout} s; the cluster has {ray.cluster_resources()}") from None
        where = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        for job, count in self.counts.items():
            for i in range(count):
                made = ray.remote(_Task).options(max_restarts=self.max_restarts, max_task_retries=0, num_cpus=self.resources.get("CPU", 0),
                                                 scheduling_strategy=where(group, placement_group_bundle_index=len(members)))
                members.append(_Member(job, i, made.remote(job, i, self.plugins, self.runtime_options)))
        places = ray.get([m.actor.place.remote() for m in members], timeout=self.timeout)
        for m, place in zip(members, places):
            m.place = place
            if place["version"] != version():
                raise RuntimeError(f"thalweg.ray.Trainer: {m.job}/{m.index} on {place['ip']} has thalweg {place['version']}, and this program "
                                   f"{version()}; install one version on all nodes")
        several = len({place["ip"] for place in places}) > 1
        cluster: dict[str, list[str]] = {}
        for m in members:
            cluster.setdefault(m.job, []).append(f"{m.place['ip'] if several else '127.0.0.1'}:{m.place['port']}")
        keys = _credentials(cluster) if several or self.secure else {}
        waiting = {self._start(ray, m, cluster, keys): m for m in members}
        values: dict[int, Any] = {}
        while len(values) < self.counts["worker"]:
            for ref in ray.wait(list(waiting), num_returns=1)[0]:
                m = waiting.pop(ref)
                try:
                    value = ray.get(ref)
                except ray.exceptions.RayActorError as e:
                    waiting[self._again(ray, m, cluster, keys, e)] = m
                    continue
                if m.job == "worker":
                    values[m.index] = value
        return [values[i] for i in range(self.counts["worker"])]

    def _start(self, ray: Any, m: _Member, cluster: dict[str, list[str]], keys: _Keys) -> Any:
        """Starts the member's server, then its work; returns what ends with the work."""
        own = {name: files for name, files in keys.items() if name in (f"{m.job}-{m.index}", f"client-{m.job}-{m.index}")}
        ray.get(m.actor.serve.remote(cluster, own, self.options), timeout=self.timeout)
        if m.job == "ps":
            return m.actor.hold.remote()
        return m.actor.run.remote(self.fn, str(self.results), str(self.folder))

    def _again(self, ray: Any, m: _Member, cluster: dict[str, list[str]], keys: _Keys, error: Exception) -> Any:
        """Waits until Ray has restarted the actor, and starts its work again."""
        until, died = time.monotonic() + self.timeout, True
        while True:
            if died:
                m.deaths, self.restarts = m.deaths + 1, self.restarts + 1
            if m.deaths > self.max_restarts:
                raise RuntimeError(f"thalweg.ray.Trainer: {m.job}/{m.index} on {m.place['ip']} died {m.deaths} times, and max_restarts is "
                                   f"{self.max_restarts}") from error
            try:
                if ray.get(m.actor.place.remote(), timeout=self.timeout)["ip"] != m.place["ip"]:
                    raise _Moved
                return self._start(ray, m, cluster, keys)
            except ray.exceptions.RayActorError as e:
                error, died = e, not isinstance(e, ray.exceptions.ActorUnavailableError)
                if time.monotonic() > until:
                    raise RuntimeError(f"thalweg.ray.Trainer: {m.job}/{m.index} is not back after {self.timeout} s") from e
                time.sleep(0.2)

    def _history(self) -> list[dict[str, Any]]:
        path, steps = self.results / "result.json", {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):  # a worker was killed while it wrote
                    record = json.loads(line)
                    steps[record["training_iteration"]] = record
        return [steps[step] for step in sorted(steps)]


def _credentials(cluster: dict[str, list[str]]) -> _Keys:
    """Makes the certificates and the token of every member, by the command line."""
    program = shutil.which("thalweg")
    if program is None:
        raise RuntimeError("thalweg.ray.Trainer: the nodes need certificates, which the program `thalweg` makes, and it is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        file, out = pathlib.Path(folder, "cluster.json"), pathlib.Path(folder, "keys")
        file.write_text(json.dumps(cluster))
        clients = [word for i in range(len(cluster["worker"])) for word in ("--client", f"worker-{i}")]
        subprocess.run([program, "cluster", "init", "--cluster", str(file), "--out", str(out), *clients], check=True, stdout=subprocess.DEVNULL)
        return {member.name: {f.name: f.read_bytes() for f in member.iterdir()} for member in out.iterdir() if member.name != "authority"}
