"""A program with more privileges than its caller ignores the environment. Folders above the library itself are not examined for other
writers; folders below it are."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

build = pathlib.Path(os.environ["THALWEG_BINARY_DIR"])
program = build / "tests" / "privileged_program"
NOBODY = 65534
failures = 0

if os.geteuid() != 0:
    print("only root can give a program rights")
    sys.exit(77)


def check(condition, what):
    global failures
    print(("passed  " if condition else "FAILED  ") + what)
    failures += not condition


def start(path, user=None, **environment):
    extra = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    plain = {"PATH": "/usr/bin:/bin"}
    return subprocess.run([str(path)], env={**plain, **environment}, capture_output=True, text=True, **extra)


def privileged(folder):
    evil = folder / "evil"
    evil.mkdir(mode=0o755)
    plugin = next((build / "tests" / "plugins").glob("good.so"), None) or build / "lib/thalweg/plugins/libcpu.so"
    shutil.copy(plugin, evil / "evil.so")
    set_user_id = folder / "set_user_id"
    shutil.copy(program, set_user_id)
    set_user_id.chmod(0o755)
    there = start(set_user_id, NOBODY, THALWEG_PLUGIN_PATH="only:")
    if there.returncode not in (0, 2):
        print("user nobody cannot start programs of this build:", there.stderr)
        sys.exit(77)
    environments = {"THALWEG_PLUGIN_PATH": str(evil), "XDG_DATA_HOME": str(folder / "data")}
    (folder / "data/thalweg").mkdir(parents=True)
    shutil.copytree(evil, folder / "data/thalweg/plugins")
    for name, value in environments.items():
        check(".so" in start(set_user_id, **{name: value}).stdout and "evil.so" in start(set_user_id, **{name: value}).stdout,
              f"{name} is heard without such rights")
    check(start(set_user_id, NOBODY, THALWEG_OPTIONS="nonsense=1").returncode == 2, "THALWEG_OPTIONS is heard without such rights")

    set_user_id.chmod(0o4755)
    if start("/bin/sh", NOBODY).returncode or os.statvfs(set_user_id).f_flag & os.ST_NOSUID:
        print("this file system gives no rights")
        sys.exit(77)
    for name, value in environments.items():
        done = start(set_user_id, NOBODY, **{name: value})
        check(done.returncode == 0 and "libcpu.so" in done.stdout and "evil" not in done.stdout, f"{name} is not heard with more rights")
    check(start(set_user_id, NOBODY, THALWEG_OPTIONS="nonsense=1").returncode == 0, "THALWEG_OPTIONS is not heard with more rights")


def beside_the_library(folder):
    open_to_all = folder / "open"
    plugins = open_to_all / "lib/thalweg/plugins"
    plugins.mkdir(parents=True)
    open_to_all.chmod(0o777)
    shutil.copy(build / "lib/libthalweg.so.0", open_to_all / "lib")
    shutil.copy(build / "lib/thalweg/plugins/libcpu.so", plugins)
    shutil.copy(build / "lib/thalweg/thalweg-probe", plugins.parent)

    def state():
        lines = start(program, LD_LIBRARY_PATH=str(open_to_all / "lib")).stdout.splitlines()
        return next(line for line in lines if str(plugins) in line)

    check(state()[0] == "4", "a plugin beside the library is known, whoever may write further up")
    plugins.chmod(0o777)
    check(state()[0] == "1" and "writable by everybody" in state(), "not so where others may write below it")


with tempfile.TemporaryDirectory() as name:
    os.chmod(name, 0o755)
    privileged(pathlib.Path(name))
    beside_the_library(pathlib.Path(name))
sys.exit(failures > 0)
