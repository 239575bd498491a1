"""Branches and loops made by hand of Switch, Merge, Enter, Exit and NextIteration."""
import contextlib
import dataclasses
import itertools

from thalweg import ops, scopes

frames = map("frame{}".format, itertools.count())


@contextlib.contextmanager
def after(graph, *values):
    """Ops in this context wait for the values, and not for the control inputs of the outer context."""
    with scopes._inside(dataclasses.replace(scopes.current(graph), after=tuple(v.operation for v in values))):
        yield


def loop(start, goes_on, body, outside=(), parallel=10):
    """while goes_on(*variables, *outside): variables = body(*variables, *outside). start: the initial variables, one or a list; the result
    has the same form, and body returns as many."""
    one = not isinstance(start, list)
    first = [start] if one else start
    graph, frame = first[0].graph, next(frames)
    entered = [ops.enter(x, frame_name=frame, parallel_iterations=parallel) for x in first]
    outside = [ops.enter(x, frame_name=frame, is_constant=True, parallel_iterations=parallel) for x in outside]
    with after(graph):
        here = [ops.merge([x, x]).output for x in entered]
        with after(graph, here[0]):
            more = ops.loop_cond(goes_on(*here, *outside))
        sides = [ops.switch(x, more) for x in here]
        inside = [ops.identity(x.output_true) for x in sides]
        with after(graph, inside[0]):
            found = body(*inside, *outside)
        for x, y in zip(here, [found] if one else found):
            graph.close_loop(x, ops.next_iteration(y))
        left = [ops.exit(x.output_false) for x in sides]
    return left[0] if one else left


def branch(pred, then, otherwise, *values):
    """Returns then(*values) if pred holds, else otherwise(*values); both return one value."""
    graph = pred.graph
    with after(graph):
        pivot = ops.switch(pred, pred)
        pred = ops.identity(pred)
        sides = [ops.switch(x, pred) for x in values]
        with after(graph, ops.identity(pivot.output_false)):
            no = ops.identity(otherwise(*(s.output_false for s in sides)))
        with after(graph, ops.identity(pivot.output_true)):
            yes = ops.identity(then(*(s.output_true for s in sides)))
        return ops.merge([no, yes]).output
