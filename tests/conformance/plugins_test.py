# Our plugins keep the rules of their levels. A level that does not apply to a plugin passes without a check.
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from kit import BINARY_DIR, run

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), folder) for folder in ("support", "plugins")]
import s3_stub  # noqa: E402
from free_port import free_port  # noqa: E402

# Plugins some of whose kernels are skipped, and the reasons.
SKIPS = {
    "libcpu.so": "it has more kernels than are tried without --full, and ops that no case can be made up for",
    "libopencl.so": "it has more kernels than are tried without --full, and ops that no case can be made up for",
    "libthalweg_cuda.so": "there is no GPU",
}

# Cases and sample graphs for facts that a schema cannot express.
HERE = os.path.dirname(os.path.abspath(__file__))
CASES = {"libonednn.so": os.path.join(HERE, "onednn.cases.json"), "liblayer_norm.so": os.path.join(HERE, "guides", "layer_norm.cases.json")}

# Models that an importer can load.
SAMPLES = {name: os.path.join(HERE, "samples", sample)
           for name, sample in {"libsavedmodel.so": "frozen.pb", "liblinear_importer.so": "model.linear"}.items()}

# file, level, settings; files that this build does not make are skipped
PLUGINS = [
    ("lib/thalweg/plugins/libcpu.so", 5),
    ("lib/thalweg/plugins/libetcd.so", 5),
    ("lib/thalweg/plugins/libgrpc.so", 5),
    ("lib/thalweg/plugins/libgrpc.so", 5, "ring=0"),
    ("lib/thalweg/plugins/libgrpc.so", 5, "shared_memory=0"),
    ("lib/thalweg/plugins/libonednn.so", 5),
    ("lib/thalweg/plugins/libopencl.so", 5),
    ("lib/thalweg/plugins/libring.so", 5),
    ("lib/thalweg/plugins/libring.so", 5, "window=4096"),
    ("lib/thalweg/plugins/libs3.so", 5),
    ("lib/thalweg/plugins/libs3.so", 5, "read_ahead=0"),
    ("lib/thalweg/plugins/libsavedmodel.so", 5),
    ("lib/thalweg/plugins/libshm.so", 5),
    ("lib/thalweg/plugins/libshm.so", 5, "window=64"),
    ("lib/thalweg/plugins/libucx.so", 5),
    ("lib/thalweg/plugins/libucx.so", 5, "spin_us=100"),
    ("lib/thalweg/plugins/libthalweg_cuda.so", 5),  # without a GPU only its description is checked
    ("tests/devices/libfake.so", 5),
    ("tests/devices/libnull.so", 1),  # computes nothing
    ("tests/guides/libdistances.so", 5),
    ("tests/guides/liblayer_norm.so", 5),
    ("tests/guides/libpipes.so", 5),
    ("tests/guides/libshelf.so", 5),
    ("tests/guides/libspill.so", 5),
    ("tests/guides/libtally.so", 5),
    ("tests/guides/libten.so", 5),
]
EXAMPLES = "examples/plugins"


def plugins():
    examples = os.path.join(BINARY_DIR, EXAMPLES)
    return PLUGINS + [(os.path.join(EXAMPLES, f), 5) for f in sorted(os.listdir(examples)) if f.endswith(".so")]


@contextlib.contextmanager
def etcd(folder):
    """Starts an etcd of our own and yields its address; None if etcd is not installed."""
    if not shutil.which("etcd"):
        yield None
        return
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    process = subprocess.Popen(["etcd", "--data-dir", os.path.join(folder, "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
                                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
                                "--log-level", "panic", "--unsafe-no-fsync"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):  # until it has elected itself leader
            with contextlib.suppress(OSError, http.client.HTTPException):
                asked = http.client.HTTPConnection(client.removeprefix("http://"), timeout=1)
                asked.request("GET", "/health")
                if json.load(asked.getresponse())["health"] == "true":
                    break
            time.sleep(0.1)
        yield client.removeprefix("http://")
    finally:
        process.kill()
        process.wait()


# Returns the file of cases of a plugin, without those that the processor excludes; or None.
def cases_of(name, folder):
    if name not in CASES:
        return None
    with open(CASES[name], encoding="utf-8") as file, open("/proc/cpuinfo", encoding="utf-8") as processor:
        cases, flags = json.load(file), processor.read().split()
    if "avx512_bf16" not in flags:  # oneDNN then has no kernels for bfloat16
        ops = cases.get("ops", {})
        cases["ops"] = {op: [c for c in given if all(x["dtype"] != "bfloat16" for x in c["inputs"])] for op, given in ops.items()}
    chosen = os.path.join(folder, name + ".cases.json")
    with open(chosen, "w", encoding="utf-8") as file:
        json.dump(cases, file)
    return chosen


# Returns an error message, or None.
def check(path, level, settings, options, folder):
    file = os.path.join(BINARY_DIR, path)
    if not os.path.exists(file):
        return None
    no_store = path.endswith("libetcd.so") and "--at" not in options  # no etcd is installed
    allowed = ["--allow-skips"] if no_store or os.path.basename(path) in SKIPS else []
    chosen = cases_of(os.path.basename(path), folder)
    cases = ["--cases", chosen] if chosen else []
    report = run(file, "--level", str(level), *cases, *(word for s in settings for word in ("--setting", s)), *allowed, *options)
    if report.status == 0 and report.json["passed"] > 0:
        return None
    return f"{' '.join([path, *settings])}: status {report.status}\n    " + "\n    ".join(report.told() + report.told("skip") + [report.errors])


def main():
    options = ["--full"] if "--full" in sys.argv else []
    wanted = [a for a in sys.argv[1:] if not a.startswith("--")]
    chosen = [(path, level, settings) for path, level, *settings in plugins() if not wanted or any(w in path for w in wanted)]
    with tempfile.TemporaryDirectory() as place, etcd(place) as store, s3_stub.Store() as objects, ThreadPoolExecutor(2) as pool:
        os.environ.update(AWS_ENDPOINT_URL=objects.url, AWS_ACCESS_KEY_ID=s3_stub.KEY, AWS_SECRET_ACCESS_KEY=s3_stub.SECRET,
                          AWS_REGION=s3_stub.REGION, AWS_CONFIG_FILE="/nonexistent/config")

        def at(path):  # for membership services, object stores and importers
            if path.endswith("libs3.so"):
                return ["--at", "s3://bucket"]
            where = SAMPLES.get(os.path.basename(path), store if path.endswith("libetcd.so") else place)
            return ["--at", where] if where else []

        # The first rule that calls all kernels of an OpenCL device pays for the compilation of their programs.
        patience = [] if options else ["--limit", "120"]
        wrong = [w for w in pool.map(lambda p: check(*p, [*options, *patience, *at(p[0])], place), chosen) if w]
    print("\n".join(wrong) or f"{len(chosen)} plugins keep the rules")
    return 1 if wrong else 0


sys.exit(main())
