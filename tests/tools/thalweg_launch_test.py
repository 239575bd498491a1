"""`thalweg launch` beyond what tests/distributed shows: thalweg_launch_test.py PROGRAMS TRANSPORT"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from thalweg_command import PROGRAMS, THALWEG, run_tests

TRANSPORT = sys.argv[2]


def copied(folder):
    """The program in a folder of its own, beside the libraries that it needs."""
    folder = pathlib.Path(folder)
    (folder / "bin").mkdir()
    (folder / "lib").symlink_to(PROGRAMS.resolve().parent / "lib")
    return pathlib.Path(shutil.copy(THALWEG, folder / "bin"))


def servers(launcher):
    """Process ids of the servers that live, and have got as far as being another program than the launcher."""
    found = []
    for pid in pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split():
        try:
            if pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:2] == ["worker"]:
                found.append(int(pid))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def started_again_after(folder, replace):
    """Calls `replace` with the program while it runs, and kills its server; answers what the launcher says, and where the new one's file is."""
    program = copied(folder)
    command = [str(program), "launch", "-n", "1", "--scheme", "unix", "--plugin", TRANSPORT, "--restart", "1", "--",
               sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as launcher:
        try:
            said = launcher.stdout.readline()
            assert said.startswith("[worker/0] listening at"), said
            first, = servers(launcher)
            replace(program)
            os.kill(first, signal.SIGKILL)
            said += launcher.stdout.readline() + launcher.stdout.readline()
            assert said.count("[worker/0] listening at") == 2, said
            again, = servers(launcher)
            file = os.readlink(f"/proc/{again}/exe")
            launcher.stdin.close()
            said += launcher.stdout.read()
        finally:
            launcher.kill()
    assert launcher.returncode == 0, said
    return file, program


def test_a_server_is_started_again_by_the_path_of_the_program(folder):
    file, program = started_again_after(folder, lambda program: None)
    assert file == str(program.resolve())


def test_a_server_is_started_again_when_the_program_is_gone(folder):
    file, program = started_again_after(folder, lambda program: program.unlink())
    assert file == f"{program.resolve()} (deleted)"


def test_a_server_that_is_started_again_is_the_same_program_although_another_stands_in_its_place(folder):
    def replace(program):
        other = program.with_name("other")
        other.write_text("#!/bin/sh\nexit 1\n")
        other.chmod(0o755)
        other.rename(program)
    file, program = started_again_after(folder, replace)
    assert file == f"{program.resolve(strict=False)} (deleted)"


sys.exit(run_tests(globals()))
