"""The wheel, installed into an environment of its own, and the README's program in it; no network, nothing of the build tree."""
import os
import pathlib
import re
import subprocess
import zipfile

import pytest

BUILD, SOURCE = (pathlib.Path(os.environ[name]) for name in ("THALWEG_BINARY_DIR", "THALWEG_SOURCE_DIR"))
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("THALWEG_", "PYTHON"))}
PLAIN = {k: v for k, v in CLEAN.items() if k != "LD_PRELOAD"}  # for what does not load the library


def command(*arguments, env=None, **options):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False, env=env or CLEAN, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command("/usr/bin/python3", "-m", "pip", "wheel", "--no-index", "--no-deps", "-q", "-w", folder, BUILD / "python", env=PLAIN)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The Python of an environment with the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    command("/usr/bin/python3", "-m", "venv", "--system-site-packages", "--without-pip", folder, env=PLAIN)
    command("/usr/bin/python3", "-m", "pip", "--python", folder / "bin/python", "install", "--no-index", "-q", wheel, env=PLAIN)
    return folder / "bin/python"


def test_the_wheel_holds_library_plugins_and_program(wheel):
    assert re.fullmatch(r"thalweg-\d+\.\d+\.\d+-py3-none-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as z:
        names = set(z.namelist())
        assert {"thalweg/__init__.py", "thalweg/_low.py", "thalweg/py.typed", "thalweg/lib/libthalweg.so.0",
                "thalweg/lib/thalweg/plugins/libcpu.so", "thalweg/bin/thalweg", "thalweg/include/thalweg/thalweg.h",
                "thalweg/share/thalweg/api.json", "thalweg/share/doc/thalweg/plugins/first_op.md"} <= names
        helpers = {f"thalweg/lib/thalweg/{p.name}" for p in (BUILD / "lib/thalweg").glob("thalweg-*")}
        assert "thalweg/lib/thalweg/thalweg-probe" in helpers and helpers <= names
        sources = {p.name for p in (SOURCE / "bindings/python/thalweg").iterdir() if p.suffix in (".py", ".typed")}
        assert {n.split("/")[1] for n in names if n.count("/") == 1 and n.startswith("thalweg/")} == sources | {"_low.py", "_options.pyi", "ops.pyi"}
        record = z.read(next(n for n in names if n.endswith("RECORD"))).decode()
        assert {line.split(",")[0] for line in record.splitlines()} == names
        needs = z.read(next(n for n in names if n.endswith("METADATA"))).decode()
        assert {"LICENSE", "THIRD_PARTY.md"} <= {n.rsplit("/", 1)[1] for n in names if ".dist-info/" in n} and "License-File: LICENSE" in needs
        assert "Requires-Dist: numpy" in needs and 'tqdm ; extra == "progress"' in needs


def test_it_uses_what_it_brought_along(python, tmp_path):
    done = command(python, "-c", "import thalweg as tw; from thalweg import _library as l; print(l.path)\n"
                   "for p in tw.plugins():\n    if p.id == 'org.thalweg.cpu': print(p.path)", cwd=tmp_path)
    assert all(str(python.parent.parent) in path for path in done.stdout.split()) and len(done.stdout.split()) == 2
    if "LD_PRELOAD" not in os.environ:  # a sanitizer's, which the program brings along itself
        assert "CPU:0" in command(python.parent / "thalweg", "devices", cwd=tmp_path).stdout


def test_a_wheel_with_a_plugin_is_found_by_its_entry_point(python, tmp_path):
    """The package names itself in the group thalweg.plugins; neither its module is imported nor a path is set."""
    info = "thalweg_twice-1.0.dist-info"
    files = {"thalweg_twice/__init__.py": b"raise ImportError('nobody imports this')\n",
             "thalweg_twice/libtwice.so": (BUILD / "examples/plugins/libtwice.so").read_bytes(),
             f"{info}/METADATA": b"Metadata-Version: 2.1\nName: thalweg-twice\nVersion: 1.0\n",
             f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
             f"{info}/entry_points.txt": b"[thalweg.plugins]\ntwice = thalweg_twice\n"}
    wheel = tmp_path / "thalweg_twice-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as z:
        for name, data in files.items():
            z.writestr(name, data)
        z.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    pip = ["/usr/bin/python3", "-m", "pip", "--python", python]
    command(*pip, "install", "--no-index", "-q", wheel, env=PLAIN)
    program = "import thalweg as tw; print(tw.ops.Twice([1.0, 2.5]).numpy().tolist())"
    assert command(python, "-c", program, cwd=tmp_path).stdout == "[2.0, 5.0]\n"
    if "LD_PRELOAD" not in os.environ:
        assert "Twice" in command(python.parent / "thalweg", "ops", "Twice", cwd=tmp_path).stdout
    command(*pip, "uninstall", "-q", "-y", "thalweg-twice", env=PLAIN)
    done = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=False, env=CLEAN, cwd=tmp_path)
    assert done.returncode and "Twice" in done.stderr


def test_the_program_of_the_readme_learns_the_digits(python, tmp_path):
    text = (SOURCE / "bindings/python/README.md").read_text()
    program = re.search(r"```python\n(import sys.*?)```", text, re.S)[1]
    assert len([line for line in program.splitlines() if line]) <= 12
    (tmp_path / "digits.py").write_text(program)
    done = command(python, "digits.py", pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv", cwd=tmp_path)
    accuracy = float(re.search(r"test accuracy ([\d.]+) %", done.stdout)[1])
    assert accuracy >= 97.5 and "epoch 20/20  step 900  loss " in done.stderr
