"""The low level of every binding names every function and constant of c_api/api.json; a new function reaches all of them by running the
generator; and the check says which language is behind."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

source = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
api = source / "c_api/api.json"
failures = 0


def check(condition, what):
    global failures
    print(("passed  " if condition else "FAILED  ") + what)
    failures += not condition


def generate(*arguments):
    done = subprocess.run([sys.executable, "-B", source / "bindings/generate", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


status, text = generate("--check", "--api", api)
check(status == 0, f"every language has every function:\n{text}")
languages = [line.split(":")[0] for line in text.splitlines()]
check({"go", "rust", "node", "java", "csharp", "r"} <= set(languages), f"languages: {', '.join(languages)}")

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)

    def changed(**function):
        """A copy of the description with one more function."""
        found = json.loads(api.read_text())
        header = next(h for h in found["headers"] if h["path"] == "thalweg/tensor.h")
        header["declarations"].append({"kind": "function", "name": "tw_tensor_new_one", "doc": "New.", "parameters": [], **function})
        (folder / "api.json").write_text(json.dumps(found))
        return folder / "api.json"

    number = {"result": {"type": "uint32_t"}, "parameters": [{"name": "tensor", "type": "const tw_tensor*"}]}
    for language in languages:
        status, text = generate(language, "--api", changed(**number), "--out", folder / language)
        written = "".join(p.read_text() for p in (folder / language).rglob("*") if p.is_file())
        check(status == 0 and ("tw_tensor_new_one" in written or "tw_1tensor_1new_1one" in written), f"{language}: a new function is there after a run {text}")
    status, text = generate("--check", "--api", changed(result={"type": "tw_unknown*"}))
    for language in languages:
        check(status == 1 and f"{language}: its template has no words for the type 'tw_unknown'" in text, f"{language}: an unknown type is told")
sys.exit(bool(failures))
