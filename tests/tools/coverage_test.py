"""tools/coverage on a one-page program: which outcomes count, which do not, and which arguments it rejects."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
PROGRAM = """namespace tw { struct Error { int code; }; }
constexpr int TW_INTERNAL = 13;
template <class T>
int Sign(T v) {
  if (sizeof(T) == 8) return 2;
  if (v < 0) return -1;
  return v > 0 && v < 3 ? 1 : 0;
}
int main(int count, char**) {
  if (count < 1) throw tw::Error{TW_INTERNAL};
  if (count > 4) return 9;
  return Sign(count) + Sign(-1.0f) + Sign(3.0);
}
"""


def tool(*arguments, status=0):
    done = subprocess.run([SOURCE / "tools/coverage", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, f"exit status {done.returncode} instead of {status}: {done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stdout + done.stderr


def build(folder):
    """Builds the program in a build folder of its own. Returns a function that runs it."""
    for name in ("bin", "coverage"):
        (folder / name).mkdir()
    (folder / "sign.cc").write_text(PROGRAM)
    subprocess.run(["clang++-19", "-O1", "-fprofile-instr-generate", "-fcoverage-mapping", folder / "sign.cc", "-o", folder / "bin/sign"],
                   check=True)
    environment = os.environ | {"LLVM_PROFILE_FILE": str(folder / "coverage/%m-%p.profraw")}
    return lambda *arguments: subprocess.run([folder / "bin/sign", *arguments], env=environment, check=False).returncode


def test_help_says_what_counts():
    assert "usage: tools/coverage" in tool("--help") and "TW_INTERNAL" in tool("--help")


def test_wrong_arguments_are_refused():
    assert "there is no '/nowhere'" in tool("/nowhere", status=2)
    assert "--what" in tool("--what", status=2)
    assert "leave --build out" in tool("--run", "--build", "/tmp", status=2)
    with tempfile.TemporaryDirectory() as empty:
        assert "holds no profiles" in tool("--build", empty, status=1)


def test_instances_and_runs_add_up_and_what_nothing_reaches_does_not_count():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        run = build(folder)
        assert run() == 2  # v is 1, then -1
        printed = tool("--build", folder, "--unmet", folder / "sign.cc")
        where = f"{folder}/sign.cc"
        assert printed.splitlines() == [
            f"{where}:7:10: never false: v > 0", f"{where}:7:19: never false: v < 3", f"{where}:11:7: never true: count > 4",
            f"  66.7 %      6 of     9  {where}", "  66.7 %      6 of     9  outcomes of conditions in 1 files; 1 left out"], printed
        assert run("a", "b") == 1 and run("a", "b", "c", "d") == 9
        printed = tool("--build", folder, "--unmet", "--least", 85, folder)
        assert printed.splitlines()[0] == f"{where}:7:10: never false: v > 0" and "88.9 %      8 of     9" in printed, printed
        assert "less than 90 %" in tool("--build", folder, "--least", 90, folder, status=1)
        assert "nothing in" in tool("--build", folder, SOURCE / "plugins/cpu/kernels", status=1)


if not all(map(shutil.which, ("clang++-19", "llvm-cov-19", "llvm-profdata-19"))):
    print("skipped: no clang-19; tools/setup --sanitizers installs it")
    sys.exit(77)
failures = 0
for name, test in list(globals().items()):
    if name.startswith("test_"):
        try:
            test()
        except Exception:
            failures += 1
            print(f"FAILED  {name}")
            traceback.print_exc()
sys.exit(failures > 0)
