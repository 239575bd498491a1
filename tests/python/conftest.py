"""What the tests of the Python binding share."""
import fnmatch
import itertools
import os
import pathlib
import signal

import pytest

import thalweg as tw

# ctest runs the files in parts of about equal time, one entry each, which may run at once (CMakeLists.txt). These are patterns of names
# without `_test.py`; the part `binding` is every other file.
PARTS = {
    "data": "data data_* generate imported iterators media_golden model onnx_export queues saved saver summar* text weights*",
    "models": "generation models*",
    "functions": "eager* flow* function* future gradients host_functions recompute tape vmap",
    "training": "all_reduce char_lm collectives examples layers* loss* metrics nn recurrent record replicas train*",
}
REST = "binding"


def part_of(name):
    """Returns the part of the file; raises if two parts have it."""
    found = [part for part, patterns in PARTS.items() if any(fnmatch.fnmatchcase(name, p) for p in patterns.split())]
    if len(found) > 1:
        raise pytest.UsageError(f"{name}_test.py is in the parts {' and '.join(found)} of tests/python/conftest.py; leave it in one")
    return found[0] if found else REST


def pytest_configure():
    # A shell starts a process in the background with SIGINT ignored; Python then has no handler, and Ctrl-C would raise nothing. Programs
    # that tests start inherit the default.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    part = os.environ.get("THALWEG_TEST_PART", "")
    if part not in ("", REST, *PARTS):
        raise pytest.UsageError(f"THALWEG_TEST_PART is '{part}'; the parts are {', '.join(PARTS)} and {REST}")
    names = [path.name.removesuffix("_test.py") for path in pathlib.Path(__file__).parent.glob("*_test.py")]
    unused = [p for patterns in PARTS.values() for p in patterns.split() if not fnmatch.filter(names, p)]
    if unused:
        raise pytest.UsageError(f"no file of tests/python has the name of {', '.join(unused)}, which conftest.py lists")
    for name in names:
        part_of(name)


def pytest_ignore_collect(collection_path):
    """Leaves out the files of other parts than THALWEG_TEST_PART; if it is not set, none."""
    part = os.environ.get("THALWEG_TEST_PART")
    name = collection_path.name
    return True if part and name.endswith("_test.py") and part_of(name.removesuffix("_test.py")) != part else None


@pytest.fixture
def graph():
    """A new graph, current while the test runs."""
    with tw.Graph() as g:
        yield g


@pytest.fixture
def x(graph):
    """A scalar to feed."""
    return tw.placeholder("float32", [], name="x")


containers = itertools.count()


@pytest.fixture
def run(graph):
    """Runs fetches in a session of the graph, run.session, whose variables are its own."""
    session = tw.Session(graph, container=f"test{next(containers)}")

    def run(fetches, feeds=None, **options):
        return session.run(fetches, feeds, **options)

    run.session = session
    return run
