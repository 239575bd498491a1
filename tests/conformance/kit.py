# Runs thalweg-conformance and reads its report, for the tests of this folder.
import json
import os
import subprocess

BINARY_DIR = os.environ["THALWEG_BINARY_DIR"]
KIT = os.path.join(BINARY_DIR, "bin", "thalweg-conformance")


class Report:
    def __init__(self, status, text, errors):
        self.status, self.errors = status, errors
        self.json = json.loads(text) if text else {"results": []}

    def rules(self, result):
        return sorted({r["rule"] for r in self.json["results"] if r["result"] == result})

    def told(self, result="fail"):
        return [f"{r['rule']:03} [{r['host']}] {r['subject']}: {r['why']}" for r in self.json["results"] if r["result"] == result]


def run(file, *options, env=None):
    # The kit stands alone, so the environment must not lead it to our libraries or plugins.
    env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "THALWEG_PLUGIN_PATH")} | (env or {})
    done = subprocess.run([KIT, file, "--json", *options], capture_output=True, text=True, env=env)
    return Report(done.returncode, done.stdout, done.stderr)
