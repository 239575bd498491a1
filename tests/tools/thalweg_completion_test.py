"""Tests of `thalweg completion`: the scripts complete correctly in each shell. Shells that are not installed are left out."""
import pathlib
import shutil
import subprocess
import sys

from thalweg_command import PROGRAMS, run, run_tests

COMMANDS = {"run", "replay", "bench", "inspect", "convert", "trace", "plot", "ops", "plugins", "new", "devices", "serve", "worker", "launch", "cluster", "ckpt", "debug", "doctor", "completion"}


def shell(*command, folder):
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return {line.strip() for line in done.stdout.splitlines() if line.strip()}


def bash(folder, *words):
    """Returns the completions that bash offers for the last word. `=` is a word of its own, as in bash."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _thalweg; printf "%s\\n" "${COMPREPLY[@]}"'
    return shell("bash", "--norc", "-c", script, "bash", str(pathlib.Path(folder) / "script"), "thalweg", *words, folder=folder)


def test_bash_completes(folder):
    script = pathlib.Path(folder) / "script"
    script.write_text(run("completion", "bash"))
    (pathlib.Path(folder) / "graph.pb").write_text("")
    assert bash(folder, "") == COMMANDS | {"--help", "--version"}
    assert bash(folder, "in") == {"inspect"}
    assert bash(folder, "run", "--f") == {"--feed", "--feed-shape", "--fetch"}
    assert bash(folder, "run", "graph.pb", "--session-option", "eng") == {"engine="}
    assert bash(folder, "run", "--session-option", "engine", "=", "f") == {"fixed"}
    assert bash(folder, "run", "--session-option", "=", "engine", "=", "f") == {"fixed"}
    assert bash(folder, "run", "--session-option", "optimize", "=") == {"true", "false"}
    assert bash(folder, "devices", "--option", "memory") == {"memory_limit."}
    assert bash(folder, "run", "gra") == {"graph.pb"} == bash(folder, "run", "--feed", "x", "=", "gra")
    assert bash(folder, "plot", "-o", "=", "gra") == {"graph.pb"} == bash(folder, "inspect", "graph.pb", "-o", "gra")
    assert bash(folder, "run", "--repeat", "") == set() == bash(folder, "run", "--feed", "x")
    assert bash(folder, "ckpt", "v") == {"verify"}
    assert bash(folder, "new", "") == {"op", "optimizer", "resource", "device", "compiler", "rewriter", "importer", "profiler", "file_system", "collective",
                                       "membership", "transport"}
    assert bash(folder, "completion", "") == {"bash", "zsh", "fish"}


def test_every_option_is_offered(folder):
    script = pathlib.Path(folder) / "script"
    script.write_text(run("completion", "bash"))
    for command in COMMANDS:
        listed = {line.split()[0] for line in run(command, "--help").splitlines() if line.startswith("  -")}
        assert bash(folder, command, "-") == listed | {"--help"}, command


def test_zsh_completes(folder):
    if not shutil.which("zsh"):
        print("         without zsh, which is not installed")
        return
    script = pathlib.Path(folder) / "_thalweg"
    script.write_text(run("completion", "zsh"))
    (pathlib.Path(folder) / "graph.pb").write_text("")
    # zsh completes only in its line editor, so the test checks the arguments that the script passes to zsh's own functions.
    ask = """compdef() { : }; _describe() { print -rl -- $commands }; _arguments() { print -rl -- "$@" }
source $1; shift; words=("$@"); CURRENT=$#words; _thalweg"""

    def offered(*line):
        return shell("zsh", "-f", "-c", ask, "zsh", str(script), "thalweg", *line, folder=folder)

    assert {line.split(":")[0] for line in offered("")} == COMMANDS
    options = offered("run", "--f")
    assert any(line.startswith("*--feed=[give a value") and line.endswith(":NAME=VALUE:_files") for line in options), options
    assert any(line.startswith("*--session-option=") and 'compadd -S "" -- threads=' in line for line in options), options
    assert "*:GRAPH:_files" in options
    assert "*:bash|zsh|fish:(bash zsh fish)" in offered("completion", "")
    assert shell("zsh", "-n", str(script), folder=folder) == set()


def test_fish_completes(folder):
    if not shutil.which("fish"):
        print("         without fish, which is not installed")
        return
    script = pathlib.Path(folder) / "thalweg.fish"
    script.write_text(run("completion", "fish"))
    (pathlib.Path(folder) / "graph.pb").write_text("")

    def offered(line):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"], capture_output=True, text=True,
                              cwd=folder, timeout=60, env={"HOME": folder, "PATH": f"{PROGRAMS}:/usr/bin:/bin"})
        assert done.returncode == 0 and "error" not in done.stderr, done.stderr
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    assert COMMANDS <= offered("thalweg ")
    assert offered("thalweg run --fe") == {"--feed", "--fetch"}
    assert offered("thalweg run gra") == {"graph.pb"}
    assert "engine=" in offered("thalweg run --session-option ")
    assert {"bash", "zsh", "fish"} <= offered("thalweg completion ")


sys.exit(run_tests(globals()))
