"""The floors of framework/: a folder includes its own headers and those of the floors that its line in
framework/CMakeLists.txt names, and no chain of includes is long."""
import functools
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRAMEWORK = ROOT / "framework"
MOST_DEPTH = 12
INCLUDE = re.compile(r'^#include "framework/([^"]+)"', re.M)


def floors():
    """Returns the floors that each floor uses, in the order of CMakeLists.txt."""
    text = (FRAMEWORK / "CMakeLists.txt").read_text()
    found = {}
    for name, body in re.findall(r"^thalweg_floor\((\w+)(.*?)\)$", text, re.M | re.S):
        uses = re.search(r"USES ([\w ]+)", body)
        found[name] = uses[1].split() if uses else []
    return found


def sources():
    return [p for p in sorted(FRAMEWORK.rglob("*")) if p.suffix in (".h", ".cc")]


@functools.cache
def included(path):
    return tuple(INCLUDE.findall(path.read_text()))


@functools.cache
def depth(name):
    """Returns the length of the longest chain of our headers that begins with this one."""
    header = FRAMEWORK / name
    return 1 + max((depth(other) for other in included(header)), default=0) if header.exists() else 1


def test_every_folder_is_a_floor():
    folders = {p.relative_to(FRAMEWORK).parts[0] for p in sources()}
    assert folders == set(floors())


def test_a_floor_uses_lower_ones_only():
    below = []
    for name, uses in floors().items():
        assert set(uses) <= set(below), f"{name} uses floors that are not below it"
        below.append(name)


def test_includes_stay_on_the_floor_and_those_it_uses():
    allowed = {name: {name, *uses} for name, uses in floors().items()}
    wrong = [f"{p.relative_to(ROOT)}: {header}" for p in sources() for header in included(p)
             if header.split("/")[0] not in allowed[p.relative_to(FRAMEWORK).parts[0]] and not header.endswith(".pb.h")]
    assert not wrong, "\n".join(wrong)


def test_a_floor_uses_what_it_names():
    for name, uses in floors().items():
        used = {header.split("/")[0] for p in sources() if p.relative_to(FRAMEWORK).parts[0] == name for header in included(p)}
        assert set(uses) <= used, f"{name} names floors that it does not include: {sorted(set(uses) - used)}"


def test_chains_of_includes_are_short():
    longest = max(FRAMEWORK.rglob("*.h"), key=lambda p: depth(str(p.relative_to(FRAMEWORK))))
    assert depth(str(longest.relative_to(FRAMEWORK))) <= MOST_DEPTH, longest


def test_chapters_of_runtime_and_planner_are_short():
    for folder in [p for top in ("runtime", "planner", "plan") for p in [FRAMEWORK / top, *(FRAMEWORK / top).iterdir()] if p.is_dir()]:
        files = [p for p in folder.iterdir() if p.suffix in (".h", ".cc")]
        assert len(files) <= 25, f"{folder.relative_to(ROOT)} has {len(files)} files"
        assert (folder / "README.md").exists(), f"{folder.relative_to(ROOT)} has no README.md"


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:], __file__]))
