"""Finds the peers and starts their workers. Peers are installed in the Python environment that tools/setup --peers makes."""
import pathlib
import subprocess

from workers import Absent

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
SETUP = HERE.parent / "setup"


def environment():
    return pathlib.Path(subprocess.run([SETUP, "--print-peers"], capture_output=True, text=True, check=True).stdout.strip())


def set_up():
    """Makes the environment if it is missing, and prints the progress. Returns whether the environment exists."""
    return subprocess.run([SETUP, "--peers"]).returncode == 0


def package(name):
    """Returns the folder of an installed package, or None."""
    return next(iter(environment().glob(f"lib/python*/site-packages/{name}")), None)


def versions():
    """Returns name and version of each installed peer."""
    listed = environment() / "thalweg-peers.txt"
    wanted = ("jax==", "onnxruntime==", "tensorflow", "torch==")
    return [line for line in listed.read_text().split() if line.startswith(wanted)] if listed.exists() else []


def command(name, folder):
    """Returns the command that starts a worker, without its last argument, the number of threads. name: TensorFlow, TensorFlow C, JAX,
    ONNX Runtime or PyTorch."""
    if name == "TensorFlow C":
        return [tensorflow_c_worker(folder)]
    return [environment() / "bin/python", "-B", PROGRAMS / f"{name.lower().replace(' ', '')}_worker.py"]


def tensorflow_c_worker(folder):
    """Compiles the worker over TensorFlow's C API against the headers and libraries of the Python package. Returns its path."""
    tensorflow = package("tensorflow")
    if not tensorflow:
        raise Absent("TensorFlow is not installed; run tools/setup --peers")
    program = pathlib.Path(folder) / "tensorflow_c_worker"
    sources = [PROGRAMS / name for name in ("tensorflow_c_worker.c", "mlp_data.c", "worker.c")]
    libraries = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    done = subprocess.run(["cc", "-std=c11", "-O2", "-DNDEBUG", f"-I{tensorflow}/include", "-o", program, *sources, f"-L{tensorflow}",
                           *libraries, f"-Wl,-rpath,{tensorflow}"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Absent(f"the program over its C API does not compile: {done.stderr[-1000:]}")
    return program
