"""Tests of `thalweg launch` beyond those in tests/distributed: thalweg_launch_test.py PROGRAMS TRANSPORT"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from thalweg_command import PROGRAMS, THALWEG, run_tests

TRANSPORT = sys.argv[2]


def copied(folder):
    """Copies the program into a folder of its own, beside a link to the libraries that it needs."""
    folder = pathlib.Path(folder)
    (folder / "bin").mkdir()
    (folder / "lib").symlink_to(PROGRAMS.resolve().parent / "lib")
    return pathlib.Path(shutil.copy(THALWEG, folder / "bin"))


def servers(launcher):
    """Returns the process ids of the servers that have already executed their own program."""
    found = []
    for pid in pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split():
        try:
            if pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:2] == ["worker"]:
                found.append(int(pid))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def started_again_after(folder, replace):
    """Calls `replace` with the program while it runs, and kills its server. Returns the file that the new server runs, and the program."""
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


# ---- Processes that end with the launcher ----

def lives(pid):
    """Returns whether the process runs and is no zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone_in_time(pids):
    until = time.monotonic() + 20
    while any(lives(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(lives(pid) for pid in pids)


class Launched:
    """A launcher of one server and of programs. Each program is a shell line that prints the ids of its children and may wait for input."""

    def __init__(self, line, *options):
        self.process = subprocess.Popen(
            [str(THALWEG), "launch", "-n", "1", "--scheme", "unix", "--plugin", TRANSPORT, *options, "--", "sh", "-c", line],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.pids = []
        self.said = ""

    def until(self, *texts):
        """Reads until each of the texts was in a line, and stores the ids of the started processes."""
        missing = set(texts)
        while missing:
            line = self.process.stdout.readline()
            assert line, f"it ended without {missing}: {self.said}"
            self.said += line
            missing -= {text for text in missing if text in line}
            if line.split()[1:2] == ["started"]:
                self.pids += [int(word) for word in line.split()[2:]]
        return self

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        for pid in self.pids:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)


JOB = "sleep 300 >/dev/null 2>&1 & "  # holds no file of the launcher open


def test_what_a_program_has_started_ends_with_it(_):
    with Launched("sleep 300 & echo started $$ $!; wait; true").until("started") as launched:
        launched.process.send_signal(signal.SIGTERM)
        assert launched.process.wait(20) == 1
        assert gone_in_time(launched.pids)


def test_what_a_program_that_was_killed_has_started_ends(_):
    with Launched(JOB + "echo started $$ $!; read go; kill -9 $$").until("started") as launched:
        launched.go()
        launched.until("client/0 was killed by signal Killed; ending all")
        assert launched.process.wait(20) == 128 + signal.SIGKILL
        assert gone_in_time(launched.pids)


def test_what_a_program_that_ended_well_has_started_ends_with_all(folder):
    line = f"if mkdir {folder}/first; then {JOB} echo started $!; else until rmdir {folder}/now; do sleep 0.02; done; exit 3; fi 2>/dev/null"
    with Launched(line, "--clients", "2").until("started") as launched:
        assert all(lives(pid) for pid in launched.pids)
        (pathlib.Path(folder) / "now").mkdir()
        launched.until("ended with status 3; ending all")
        assert launched.process.wait(20) == 3
        assert gone_in_time(launched.pids)


def test_what_a_program_has_started_has_time_to_end_by_itself(folder):
    job = f"trap 'sleep 0.5; echo all >{folder}/saved; exit' TERM; >{folder}/ready; while :; do sleep 0.02; done"
    line = f"({job}) >/dev/null 2>&1 & until [ -e {folder}/ready ]; do sleep 0.02; done; echo started $$ $!; wait"
    with Launched(line).until("started") as launched:
        launched.process.send_signal(signal.SIGTERM)
        assert launched.process.wait(20) == 1
        assert (pathlib.Path(folder) / "saved").read_text() == "all\n"
        assert gone_in_time(launched.pids)


def test_what_a_program_has_started_and_will_not_end_is_made_to(folder):
    job = f"trap '' TERM; >{folder}/ready; while :; do sleep 0.02; done"
    line = f"({job}) >/dev/null 2>&1 & until [ -e {folder}/ready ]; do sleep 0.02; done; echo started $$ $!; wait"
    with Launched(line).until("started") as launched:
        launched.process.send_signal(signal.SIGTERM)
        assert launched.process.wait(20) == 1
        assert gone_in_time(launched.pids)


def test_what_a_program_has_started_does_not_run_beside_the_program_that_is_started_again(folder):
    line = f"if mkdir {folder}/first; then {JOB} echo started $$ $!; read go; kill -9 $$; else echo again; read go; fi 2>/dev/null"
    with Launched(line, "--restart", "1").until("started") as launched:
        launched.go()
        launched.until("client/0 was killed by signal Killed; starting it again", "again")
        assert gone_in_time(launched.pids)
        assert launched.process.poll() is None
        launched.go()
        assert launched.process.wait(20) == 0


def test_a_program_that_will_not_end_and_goes_on_talking_is_made_to(_):
    with Launched("trap '' TERM; echo started $$; while :; do echo still here; sleep 0.02; done").until("started") as launched:
        launched.process.send_signal(signal.SIGTERM)
        launched.process.stdout.read()
        assert launched.process.wait(20) == 1
        assert gone_in_time(launched.pids)


def test_a_line_without_end_is_shown_in_parts(_):
    with Launched("head -c 200000 /dev/zero | tr '\\0' x; echo; echo short") as launched:
        lines = [line.split(" ", 1)[1] for line in launched.process.stdout.read().splitlines() if line.startswith("[client/0] ")]
        assert [len(line) for line in lines] == [65536, 65536, 65536, 200000 - 3 * 65536, 5], [len(line) for line in lines]
        assert launched.process.wait(20) == 0


def test_output_that_somebody_else_holds_when_all_have_ended_is_not_waited_for(_):
    with Launched("sleep 300 & echo started $!").until("started") as launched:
        assert launched.process.wait(20) == 0
        assert all(lives(pid) for pid in launched.pids)


def test_servers_and_programs_of_a_launcher_that_is_killed_end(_):
    with Launched("echo started $$; exec sleep 300").until("listening at", "started") as launched:
        mine = launched.pids + servers(launched.process)
        assert len(mine) == 2, mine
        launched.process.kill()
        assert gone_in_time(mine)


sys.exit(run_tests(globals()))
