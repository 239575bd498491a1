import logging
import os
import subprocess
import sys
import threading

import pytest

import thalweg as tw


@pytest.fixture(autouse=True)
def silent():
    yield
    tw.log.set(None)


def test_a_function_gets_lines_of_its_level_and_above():
    lines = []
    tw.log.set(lambda level, text: lines.append((level, text)), "warning")
    for level in ("debug", "info", "warning", "error"):
        tw.log.write(f"a {level} \u00e9", level)
    assert lines == [(logging.WARNING, "a warning \u00e9"), (logging.ERROR, "a error \u00e9")]
    tw.log.set(None)
    tw.log.write("nowhere", "error")
    assert len(lines) == 2


def test_a_logger_gets_them_under_pythons_rules(caplog):
    logger = logging.getLogger("thalweg.test")
    logger.setLevel(logging.INFO)
    tw.log.set(logger)
    tw.log.write("not this", "debug")
    tw.log.write("100 % of this")
    tw.log.write("and this", logging.ERROR)
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [(logging.INFO, "100 % of this"), (logging.ERROR, "and this")]


def test_standard_error_needs_no_python(capfd):
    tw.log.set("stderr", "error")
    tw.log.write("lost", "warning")
    tw.log.write("found", "error")
    assert capfd.readouterr().err == "thalweg: error: found\n"


def test_runtimes_have_logs_of_their_own():
    mine, theirs, other = [], [], tw.Runtime(threads=1, load_plugins=False)
    tw.log.set(lambda _, text: mine.append(text))
    tw.log.set(lambda _, text: theirs.append(text), runtime=other)
    tw.log.write("one")
    tw.log.write("two", runtime=other)
    assert (mine, theirs) == (["one"], ["two"])
    tw.log.set(None, runtime=other)


def test_what_the_runtime_says_comes_through():
    lines, runtime = [], tw.Runtime(threads=1)
    tw.log.set(lambda level, text: lines.append((level, text)), runtime=runtime)
    with tw.Graph(runtime) as g, tw.device("GPU:0"):
        y = tw.ops.exp(tw.placeholder("float32", [], name="x"), name="far")
    assert tw.Session(g, soft_placement=True).run(y, {"x": 0}) == 1
    tw.log.set(None, runtime=runtime)
    assert any(level == logging.WARNING and "'far'" in text and "GPU:0" in text for level, text in lines)


def test_wrong_sinks_and_levels_are_refused():
    for level in ("loud", True, 2.5):
        with pytest.raises(ValueError, match="is no level; there are: debug, info"):
            tw.log.set(print, level)
    with pytest.raises(TypeError, match="5 is no sink"):
        tw.log.set(5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_sink_that_raises_hurts_nobody():
    def sink(level, text):
        raise ValueError(text)
    tw.log.set(sink)
    tw.log.write("oops")
    lines = []
    tw.log.set(lambda _, text: lines.append(text))
    tw.log.write("fine")
    assert lines == ["fine"]


def test_many_threads_write_and_replace():
    lines = []

    def work(i):
        for k in range(200):
            if i == 0 and k % 10 == 0:
                tw.log.set(lambda _, text: lines.append(text))
            tw.log.write(f"{i} {k}")

    tw.log.set(lambda _, text: lines.append(text))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert 700 < len(lines) <= 800


def test_the_program_may_end_while_others_write():
    text = ("import threading, thalweg as tw\nlines = []\ntw.log.set(lambda _, text: lines.append(text))\n"
            "def work():\n    while True:\n        tw.log.write('line')\n"
            "for _ in range(3):\n    threading.Thread(target=work, daemon=True).start()\n"
            "while len(lines) < 1000:\n    pass\n")
    for _ in range(3):
        done = subprocess.run([sys.executable, "-B", "-c", text], capture_output=True, text=True, check=False, env=os.environ, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
