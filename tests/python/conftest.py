"""What the tests of the Python binding share."""
import itertools

import pytest

import thalweg as tw


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
