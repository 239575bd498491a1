"""Limits the lines of code that the author of a plugin must write, in plugins/examples.

A line of code has a letter or a digit outside comments and string literals, so blank lines, comments and single braces do not count. The
lines of the gradient are those of functions that have the word in their name."""
import os
import pathlib
import re
import sys

EXAMPLES = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "plugins/examples"

# file: (lines without the gradient, lines of the gradient)
AT_MOST = {
    "twice.c": (18, 6),
    "swish.cc": (10, 6),
    "toy_device.c": (40, 0),
    "train_device.c": (60, 0),
    "async_device.c": (200, 0),
    "socket_transport.c": (250, 0),
}


def without_comments(text):
    text = re.sub(r'"(\\.|[^"\\\n])*"', "T", text)
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)


def count(text):
    """Returns (lines without the gradient, lines of the gradient)."""
    lines, gradient, inside = 0, 0, False
    for line in without_comments(text).splitlines():
        inside = inside or bool(re.match(r"static \S.*[gG]radient\(", line))
        if re.search(r"[A-Za-z0-9]", line):
            lines, gradient = lines + (not inside), gradient + inside
        # A function ends at a line that begins with a brace, or at its only line.
        inside = inside and not re.match(r"\}|static .*\}$", line)
    return lines, gradient


def test_what_counts():
    sample = ("/* a\n b */\n#include <x>\n\nint f(void) {  // so\n  return 1;\n}\n"
              'static tw_status* twice_gradient(x* c) {\n  g("{ }");\n  return NULL;\n}\n')
    assert count(sample) == (3, 3), count(sample)


def main():
    test_what_counts()
    failed = 0
    for name, most in AT_MOST.items():
        if not (EXAMPLES / name).exists():
            failed += 1
            print(f"FAILED  {name} is not there")
            continue
        found = count((EXAMPLES / name).read_text())
        good = all(n <= limit for n, limit in zip(found, most))
        failed += not good
        print(f"{'passed' if good else 'FAILED'}  {name}: {found[0]} lines of code (at most {most[0]}), "
              f"{found[1]} more for the gradient (at most {most[1]})")
    return int(failed > 0)


sys.exit(main())
