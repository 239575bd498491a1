"""tools/bench: its list, a row that times nothing, the arguments that it rejects, and how it judges and prints results. No test measures
time."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

SOURCE, BUILD = (pathlib.Path(os.environ[f"THALWEG_{name}_DIR"]) for name in ("SOURCE", "BINARY"))
sys.path.insert(0, str(SOURCE / "tools/benchmarks"))
import figures
import table
from bench import Bench, Goal
from workers import Failed, Worker

MACHINE = [sys.executable, "-c", "print('ready')\nwhile True: print(eval(input()))", "1"]  # a worker that evaluates commands


def run(*arguments, status=0):
    done = subprocess.run([str(SOURCE / "tools/bench"), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, f"exit status {done.returncode} instead of {status}: {done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def test_help_and_list_say_what_there_is():
    assert "usage: tools/bench" in run("--help")
    rows = [line.split()[0] for line in run("--list").splitlines()]
    assert rows == ["1", "2", "3", "4", "5", "6", "7", "8", "9", "15", "16", "17", "18", "19", "20", "21", "22", "23", "25", "26", "27", "28",
                    "31", "32", "33", "34", "29", "35", "36", "37", "38", "39", "40", "41", "42"], rows


def test_wrong_arguments_are_refused():
    for arguments, part in ((["--rows", "99"], "no row 99; there are 1, 2"), (["--rows", "one"], "'one'"), (["--pairs", "0"], "not 0"),
                            (["--speed"], "--speed")):
        said = run(*arguments, status=2)
        assert part in said, said
    assert "no configured build" in run("--rows", 27, "--build", "/nowhere", status=1)


def test_every_op_has_a_case_or_a_reason():
    lines = run("ops", "--list", "--no-build", "--build", BUILD).splitlines()
    assert len({line.split()[0] for line in lines}) > 300 and any("not compared: prints" in line for line in lines), lines
    assert not [line for line in lines if "nobody has written" in line], [line for line in lines if "nobody has written" in line]


def test_ops_are_timed_alone_without_peers():
    printed = run("ops", "--ops", "Rank,NoOp", "--pairs", 1, "--no-build", "--build", BUILD)
    assert printed.splitlines()[0].split() == ["op", "ours", "TensorFlow", "ratio", "met"] and "Rank" in printed, printed
    assert "no op Nothing" in run("ops", "--ops", "Nothing", "--no-build", "--build", BUILD, status=1)
    assert "--ops is for" in run("--ops", "Rank", status=2)


def test_a_difference_of_results_is_told():
    sys.path.insert(0, str(SOURCE / "tools/benchmarks/programs"))
    import numpy as np
    import op_files
    x = np.arange(10, dtype=np.float32)
    assert op_files.difference([x], [x * np.float32(1.0001)]) == ""
    assert "output 0 differs in 1 of 10" in op_files.difference([x], [np.where(x == 9, 5, x)])
    assert "[10] against [5, 2]" in op_files.difference([x], [x.reshape(5, 2)])


def test_row_27_measures_sizes():
    with tempfile.TemporaryDirectory() as folder:
        printed = run("--rows", 27, "--build", BUILD, "--json", f"{folder}/out.json")
        written = json.loads(pathlib.Path(folder, "out.json").read_text())
    assert printed.split("\n")[0].split() == ["row", "what", "ours", "anchor", "ratio", "goal", "met"], printed
    sizes = {result["what"]: result["ours"] for result in written["results"]}
    assert list(sizes) == ["core library", "CPU kernels", "idle memory"], sizes
    assert 100e3 < sizes["core library"] <= (BUILD / "lib/libthalweg.so").stat().st_size, sizes
    assert written["results"][0]["anchor"] is None and "no anchor" in printed, printed


def bench(folder):
    """Makes a bench with two workers, ours and the anchor's, whose answers are in the commands."""
    made = Bench(folder, 4, False, False)
    made.probes.append({})
    workers = [made.worker(name, lambda log: Worker(MACHINE, 1, log)) for name in ("ours", "anchor")]
    return made, workers


def test_goals_are_judged_and_shown():
    cases = (  # ours, anchor, goal, ratio shown, goal shown, met
        (100, 400, Goal(0.5), "0.25x", "<= 0.5x", "yes"),
        (300, 400, Goal(0.5, floor=1), "0.75x", "<= 0.5x (floor 1x)", "missed"),
        (500, 400, Goal(0.5, floor=1), "1.25x", "<= 0.5x (floor 1x)", "missed, floor too"),
        (500, 400, Goal(50, of="difference"), "+100 ns [100 100]", "<= +50 ns", "missed"),
        (500, 400, Goal(500, of="ours"), "1.25x", "<= 500 ns", "yes"),
        (500, 400, None, "1.25x", "-", "-"),
    )
    with tempfile.TemporaryDirectory() as folder:
        made, (ours, anchor) = bench(folder)
        try:
            for a, b, goal, ratio, shown, met in cases:
                made.compare("work", ("us", ours, f"'ok {a}'"), ("them", anchor, f"'ok {b}'"), unit="ns", goal=goal)
                cells = table.cells(made.results[-1])
                assert cells[1:] == ("work", f"{a} ns", f"them: {b} ns", ratio, shown, met), cells
        finally:
            made.close()


def test_pairs_are_taken_in_turns():
    order = []
    with tempfile.TemporaryDirectory() as folder:
        made, workers = bench(folder)
        for name, worker in zip("AB", workers):
            worker.ask = lambda command, name=name: order.append(name) or [1.0]
        made.compare("work", ("us", workers[0], ""), ("them", workers[1], ""), unit="ns")
        made.close()
    assert "".join(order) == "ABBAABBA", order


def test_an_absent_anchor_leaves_the_probe():
    with tempfile.TemporaryDirectory() as folder:
        made, (ours, _) = bench(folder)
        try:
            made.compare("work", ("us", ours, "'ok 30'"), ("them", None, ""), unit="ns", goal=Goal(2), probe=("probes", lambda: 10))
        finally:
            made.close()
    assert table.cells(made.results[0])[2:] == ("30 ns", "them: no anchor", "3x probes", "<= 2x", "-"), table.cells(made.results[0])


def test_a_parallel_comparison_needs_a_probe_that_scales():
    with tempfile.TemporaryDirectory() as folder:
        made, (ours, anchor) = bench(folder)
        made.cpus = lambda: 2
        scales = [1.5] * 12 + [1.5, 1.6, 1.9, 1.4] + [2.0, 1.5, 1.9, 1.9]
        made.scaling = lambda: scales.pop(0)
        try:
            for _ in range(2):  # first three attempts that do not count; then one that does not count and one that does
                made.compare("work", ("us", ours, "'ok 1'"), ("them", anchor, "'ok 2'"), unit="ns", goal=Goal(1), threads=2)
        finally:
            made.close()
    assert [result.met for result in made.results] == ["discarded: the probe scales 1.50x", "yes"] and not scales, made.results


def test_a_worker_that_fails_says_why():
    with tempfile.TemporaryDirectory() as folder:
        made, (ours, anchor) = bench(folder)
        try:
            for command, part in (("'error no such thing'", "no such thing"), ("1 / 0", "ended with status 1; see")):
                try:
                    ours.ask(command)
                    assert False, "the worker's failure was not seen"
                except Failed as error:
                    assert part in str(error), error
        finally:
            made.close()


def test_rows_that_are_run_again_take_the_place_of_their_lines():
    before = "Written then.\n- rows 1, 3 again: yesterday\n\n| row | what |\n| --- | --- |\n| 1 | a |\n| 2 | b |\n| 2 | c |\n| 4 | d |\n\n    probe\n"
    after = figures.put(before, ["| 3 | e |", "| 2 | f |", "| 3 | g |"], "today", [1, 2, 4, 3])
    assert after == ("Written then.\n- rows 1 again: yesterday\n- rows 2, 3 again: today\n\n| row | what |\n| --- | --- |\n| 1 | a |\n| 2 | f |\n"
                     "| 4 | d |\n| 3 | e |\n| 3 | g |\n\n    probe\n"), after
    assert "--peers" in run("--readme", "--rows", "27", status=2)


failed = 0
for name, test in [(n, f) for n, f in globals().items() if n.startswith("test_")]:
    try:
        test()
        print("passed ", name)
    except Exception:
        failed += 1
        print("FAILED ", name)
        traceback.print_exc(file=sys.stdout)
sys.exit(bool(failed))
