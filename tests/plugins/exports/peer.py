"""Makes exports of Keras and TensorFlow, or of PyTorch, and compares them with what those answer: peer.py keras|torch small|all

small: the models of expected.txt up to the line "# large". A model that cannot be exported by this version of a framework is reported and left
out. Exit status: 0 as expected.txt says, 1 not, 77 the framework is not installed."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

import exports

HERE = pathlib.Path(__file__).parent
NEEDS = {"keras": ("tensorflow", "keras"), "torch": ("torch", "torchvision", "transformers", "onnx", "onnxscript")}


def models(framework, part):
    """Returns the names of a framework's models in expected.txt; those of PyTorch end with their exporter."""
    text = (HERE / "expected.txt").read_text()
    lines = (text if part == "all" else text.partition("# large")[0]).splitlines()
    names = [line.partition(": ")[0] for line in lines if line and not line.startswith("#")]
    return [n for n in names if n.endswith((".script", ".dynamo")) == (framework == "torch")]


def main(framework, part):
    missing = [m for m in NEEDS[framework] if importlib.util.find_spec(m) is None]
    if missing:
        print(f"skipped: there is no {missing[0]}; tools/setup --peers installs it")
        return 77
    names = models(framework, part)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-B", str(HERE / f"{framework}_exports.py"), folder, *names], env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
        made = [n for n in names if (pathlib.Path(folder) / n / "outputs.npz").is_file()]
        print(f"{len(made)} of {len(names)} are exported; left out: {', '.join(n for n in names if n not in made) or 'none'}")
        return exports.main([folder, *made, "--expected", str(HERE / "expected.txt")]) if made else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
