"""Tests of the guide, c_api/README.md: its programs compile without a warning, run in their order, and print the output on the page.

A fenced block that begins with the name of a file starts that file; the other blocks continue the last file. Together, the `text` blocks
are the program's output."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

source, build = (pathlib.Path(os.environ[name]) for name in ("THALWEG_SOURCE_DIR", "THALWEG_BINARY_DIR"))
page = source / "c_api/README.md"
data = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
compilers = {".c": ["cc", "-std=c11"], ".cc": ["c++", "-std=c++17"]}
failures = 0


def check(condition, what):
    global failures
    print(("passed  " if condition else "FAILED  ") + what)
    failures += not condition


def programs():
    """Returns {file: (text, output)} in the order of the page."""
    found, file = {}, None
    for kind, text in re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.M | re.S):
        first = re.match(r"/\* ([\w.]+) \*/\n", text)
        file = first[1] if first else file
        program, output = found.get(file, ("", ""))
        found[file] = (program, output + text) if kind == "text" else (program + text, output)
    return found


def run(folder, file, text, output):
    path, program = folder / file, folder / pathlib.Path(file).stem
    path.write_text(text)
    library = build / "lib"
    command = [*compilers[path.suffix], *warnings, path, "-I", source / "c_api/include", "-L", library, "-lthalweg", "-lpthread",
               f"-Wl,-rpath,{library}", "-o", program]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{file} compiles without a warning")
    if done.returncode:
        print(done.stderr)
        return
    done = subprocess.run([program, data], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    check(done.returncode == 0, f"{file} ends well: {done.stderr.strip()}")
    check(done.stdout == output, f"{file} prints what the page says")
    if done.stdout != output:
        print(f"---- the page:\n{output}---- the program:\n{done.stdout}----")


if "san" in build.name:
    print("skipped  the programs are built without sanitizers")
    sys.exit(77)
if not data.exists():
    print(f"skipped  {data} is not there; run tools/setup")
    sys.exit(77)

pages = programs()
check(list(pages) == ["guide.c", "serve.c", "sugar.cc"], f"the page has its three programs: {', '.join(map(str, pages))}")
check(len(page.read_text().splitlines()) <= 480, "the page has at most 480 lines")
listed = {n for n in re.findall(r"`(\w+)\.h`|`(\w+)`", page.read_text().split("## How this folder is built")[-1]) for n in n if n}
headers = {p.stem for p in (source / "c_api/include/thalweg").glob("*.h")} - {"thalweg", "export"}
check(headers <= listed, f"it names every header; missing: {', '.join(sorted(headers - listed)) or 'none'}")
with tempfile.TemporaryDirectory() as name:
    for file, (text, output) in pages.items():
        run(pathlib.Path(name), file, text, output)

sys.exit(bool(failures))
