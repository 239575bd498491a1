"""Random programs of For loops, as data: loops over a few values, nested and beside conditions. for_gradient_test.py runs them here and in
NumPy, for_gradient_peer.py in TensorFlow. This file needs only Python."""
import random


def program(seed):
    """Returns the number of values, and statements: (to, op, a, b), ("for", start, limit, delta, statements) or ("if", at, statements,
    statements). b may be -1, the counter of the innermost loop."""
    r = random.Random(seed)
    count, budget = r.randint(2, 4), [r.randint(5, 16)]

    def assignment(in_loop):
        return (r.randrange(count), r.choice(["add", "subtract", "scale", "sin", "tanh", "half"]), r.randrange(count),
                r.randrange(-1 if in_loop else 0, count))

    def loop(depth):
        start, delta = r.randint(-3, 3), r.choice([-2, -1, 1, 1, 2, 3])
        odd = r.choice([0, 1]) if delta > 1 else 0  # the last step may go beyond the limit
        return ("for", start, start + delta * r.randint(0, 3) + odd, delta, block(depth - 1, True))

    def block(depth, in_loop):
        made = []
        for _ in range(r.randint(1, 4)):
            budget[0] -= 1
            kind = r.random() if depth and budget[0] > 0 else 0
            made.append(assignment(in_loop) if kind < 0.5 else loop(depth) if kind < 0.85 else
                        ("if", r.randrange(count), block(depth - 1, in_loop), block(depth - 1, in_loop)))
        return made

    return count, [*block(2, False), loop(2), *block(1, False)]


def run(statements, values, how, number=None):
    """Runs the statements and returns the values. how: functions on values: sin(x), tanh(x), float_of(number), loop(start, limit, delta,
    body, values) with body(number, values), and choose(at, then, otherwise, values), which calls then(values) if the sum of values[at] is
    above 0. Scaled values are multiplied by less than 1, so that nested loops do not overflow."""
    values = list(values)
    for what, *rest in statements:
        if what == "for":
            start, limit, delta, inside = rest
            values = how.loop(start, limit, delta, lambda i, v, inside=inside: run(inside, v, how, i), values)
        elif what == "if":
            at, yes, no = rest
            values = how.choose(at, lambda v, yes=yes: run(yes, v, how, number), lambda v, no=no: run(no, v, how, number), values)
        else:
            op, a, b = rest
            x, y = values[a], how.float_of(number) if b < 0 else values[b]
            values[what] = {"add": lambda: x + y, "subtract": lambda: x - y, "scale": lambda: how.tanh(x) * y, "half": lambda: x * 0.5,
                            "sin": lambda: how.sin(x), "tanh": lambda: how.tanh(x)}[op]()
    return values
