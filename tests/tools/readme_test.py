"""Checks that the files, tests, links, commands and options that pages name exist, and that tables are complete.
readme_test.py FOLDER_OF_PROGRAMS

Checks every hand-written page (the generators of ops/reference and c_api/reference have their own tests). A page names a file by its path
from the root, from the page's folder or from any folder, or by its last part. Commands are looked up, not run: the sub-command and options
must be in the output of --help. The tests of the guides check the output that pages show."""
import os
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
programs = pathlib.Path(sys.argv[1])
GENERATED = ("ops/reference/", "c_api/reference/")
SOURCES = "cc|h|hpp|c|py|cmake|proto|cl|cuh|rs|md"
# Names that stand for a file of the reader, or belong to other projects.
OTHERS = {
    "libfoo.md", "libswish.md", "test.c",  # written by `thalweg ops --markdown` and `thalweg new`
    "cuda.h", "cublasLt.h", "nvrtc.h", "cudnn.h",  # of toolkits
    "thalweg/_low.py",  # made by the build
}


def sources():
    """Returns every file of the tree that a build does not make."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    if listed.returncode == 0:
        return [f for f in listed.stdout.splitlines() if (root / f).exists()]
    return [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and p.relative_to(root).parts[0] != "build"]


class Tree:
    def __init__(self, files):
        self.files = set(files)
        self.ends = {"/".join(path.split("/")[k:]) for path in files for k in range(path.count("/") + 1)}
        self.stems = {pathlib.PurePath(f).stem for f in files}
        self.tests = set()
        for file in files:
            if file.endswith("CMakeLists.txt"):
                self.tests |= set(re.findall(r"^ *thalweg_(?:test|script_test|fuzzer|nightly)\(([\w${}]+)", (root / file).read_text(), re.M))
        self.cases, self.full_cases = set(), set()  # Case, test_case; Suite.Case
        for file in files:
            if file.startswith("tests/") and file.endswith((".cc", ".c", ".h", ".py")):
                found = re.findall(r"^ *TEST(?:_F|_P)?\((\w+),\s*(\w+)\)|\bTEST\((\w+)\)|^ *def (test_\w+)", (root / file).read_text(), re.M)
                self.cases |= {name for _, *names in found for name in names if name}
                self.full_cases |= {f"{suite}.{case}" for suite, case, *_ in found if suite}

    def has_file(self, page, name):
        beside = os.path.normpath(str(pathlib.PurePath(page).parent / name))
        return name in OTHERS or name in self.ends or beside in self.files

    def has_test(self, name):
        """Returns whether ctest has the test. Some names contain a variable: ops_${family}_family_test."""
        patterns = (re.sub(r"\\\$\\{\w+\\}", r"\\w+", re.escape(t)) for t in self.tests)
        return name in self.stems or any(re.fullmatch(p, name) for p in patterns)

    def is_proof(self, name):
        """Returns whether the name is that of a test: Suite.Case, Case, test_case, a test of ctest, or a file of tests."""
        a_file = re.fullmatch(r"[\w/]+\.(cc|c|py)", name) and (name.startswith("tests/") or "_test." in name) and self.has_file("", name)
        return name in self.cases or name in self.full_cases or bool(re.fullmatch(r"\w+_(test|fuzz)(_nightly)?", name) and self.has_test(
            name.removesuffix("_nightly"))) or bool(a_file)

    def finds_test(self, regex):
        made = (re.sub(r"\$\{\w+\}", "any", t) for t in self.tests)
        return any(re.search(regex, t) for t in made)


def prose(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def wrong_names(tree, page, text):
    for code in re.findall(r"`([^`\n]+)`", prose(text)):
        for name in re.findall(rf"[\w./*{{}}<>$-]+\.(?:{SOURCES})\b(?![\w.(])", code):
            placeholder = re.search(r"[*{}<>$]|\b[A-Z]{3,}\b(?!\.md)", name)
            if not placeholder and not name.startswith("/") and not tree.has_file(page, name):
                yield f"`{name}` is no file of the tree"
        if re.fullmatch(r"\w+_test", code) and not tree.has_test(code):
            yield f"`{code}` is no test"
    for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", prose(text)):
        if "://" not in link and not (root / pathlib.PurePath(page).parent / link).exists():
            yield f"the link to {link} leads nowhere"


def unnamed(tree, page, text):
    """Yields the names that a page leaves out: headers beside a table of files, and roles that ops have."""
    folder = str(pathlib.PurePath(page).parent)
    if "## Files in reading order" in text:
        beside = (pathlib.PurePath(f) for f in sorted(tree.files) if f.endswith(".h"))
        for header in (h for h in beside if str(h.parent) == folder):
            if f"`{header.name}`" not in text:
                yield f"{header.name} is not among its files"
    if page == "framework/README.md":
        schemas = " ".join((root / f).read_text() for f in sorted(tree.files) if f.startswith("ops/") and f.endswith(".cc"))
        yield from (f"role `{role}` is not told" for role in sorted(set(re.findall(r"; role (\w+)", schemas))) if f"`{role}`" not in text)


def blocks(text):
    """Yields each paragraph, list item and table row of a page, with the header of its table or None."""
    header, lines = None, []
    for line in [*prose(text).splitlines(), ""]:
        if not line.strip() or line.startswith(("- ", "|", "#")):
            if lines:
                yield " ".join(lines), None
            lines = []
        if line.startswith("|"):
            if header and not re.fullmatch(r"[|\s:-]+", line):
                yield line, header
            header = header or line
        else:
            header = None
            if line.strip() and not line.startswith("#"):
                lines.append(line)


def unproven(tree, page, text):
    """Yields the promises of SECURITY.md without a test. Each row of a table with a column `test`, each list item, and each section but the
    first, which asks for reports, must name an existing test. A name of the form Suite.Case is that of a test."""
    if page != "SECURITY.md":
        return
    for name in re.findall(r"`([A-Z]\w*\.[A-Z]\w*)`", prose(text)):
        if name not in tree.full_cases and not tree.has_file(page, name):
            yield f"`{name}` is no test"
    for block, header in blocks(text):
        columns = [c.strip() for c in header.strip("| ").split("|")] if header else []
        if "test" in columns:
            cells = re.split(r"(?<!\\)\|", block.strip().strip("|"))
            cell = cells[columns.index("test")] if len(cells) == len(columns) else ""
            names = re.findall(r"`([^`]+)`", cell)
            yield from (f"`{n}` is no test" for n in names if not tree.is_proof(n))
            if not names:
                yield f"no test is named for: {block}"
        elif block.startswith("- ") and not any(tree.is_proof(n) for n in re.findall(r"`([^`]+)`", block)):
            yield f"no test is named for: {block}"
    for section in re.split(r"^## ", text, flags=re.M)[2:]:
        if not any(tree.is_proof(n) for n in re.findall(r"`([^`\n]+)`", section)):
            yield f"section '{section.splitlines()[0]}' names no test"


HELP = {}


def help_of(*command):
    if command not in HELP:
        done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, timeout=60)
        HELP[command] = done.stdout if done.returncode == 0 else None
    return HELP[command]


def commands(text):
    """Yields the commands of a page, in backticks or as a line of a block, up to a pipe, a comment, or the command of another program."""
    start = r"(tools/[\w/-]+|(?:build/release/bin/)?thalweg(?![\w-])|ctest\b)"
    for match in re.finditer(rf"(?:`|^    (?:\$ )?|^)({start}(?![\w/.]) ?[^`\n]*)", text, re.M):
        line = re.split(r"[`|#>;&]| -- ", match[1])[0]
        yield line.replace("'", "").replace('"', "").split()


def wrong_command(tree, words):
    """Returns the error in a command, or None."""
    program, arguments = words[0], words[1:]
    options = [w.split("=")[0] for w in arguments if re.match(r"--[a-z]", w)]
    if program == "ctest":
        at = arguments.index("-R") + 1 if "-R" in arguments else 0
        return f"-R {arguments[at]} finds no test" if at and not tree.finds_test(arguments[at]) else None
    if program.startswith("tools/"):
        path = root / program
        if path.is_dir():
            return None
        if not path.is_file() or not os.access(path, os.X_OK):
            return "there is no such command"
        said = "" if path.name == "peer-python" else help_of(str(path))
        if path.name in ("peer-python", "test"):  # they pass unknown arguments on
            options = []
    else:
        said, sub = help_of(str(programs / "thalweg")), arguments[:1]
        if sub and re.fullmatch(r"[a-z]+", sub[0]):
            if not re.search(rf"^  {sub[0]} ", said, re.M):
                return f"there is no sub-command {sub[0]}"
            said = help_of(str(programs / "thalweg"), sub[0])
            if sub[0] in ("cluster", "new", "trace", "ckpt") and len(arguments) > 1 and re.fullmatch(r"[a-z]+", arguments[1]):
                if not re.search(rf"\b{arguments[1]}\b", said):
                    return f"{sub[0]} knows no {arguments[1]}"
    if said is None:
        return "its --help fails"
    unknown = [o for o in options if o != "--help" and not re.search(rf"{o}\b", said)]
    return f"its --help does not know {unknown[0]}" if unknown else None


def main():
    files = sources()
    tree = Tree(files)
    pages = sorted(f for f in files if f.endswith(".md") and not f.startswith(GENERATED))
    # Proves that the checks can fail.
    assert list(wrong_names(tree, "README.md", "`no/such.cc` and [this](no/page.md) and `nothing_test`")) != []
    assert list(unnamed(tree, "framework/README.md", "")) and list(unnamed(tree, "framework/io/README.md", "## Files in reading order"))
    table = "## A\n## B\n| promise | test |\n| --- | --- |\n| x | `readme_test`, `tests/tools/readme_test.py` |\n"
    assert not list(unproven(tree, "SECURITY.md", table + "\n- it holds (`readme_test`)"))
    for promise in ("## A\n## B\nAll is well.", table + "\n- it holds (`no_such_test`)", table + "\n`Suite.NoCase`", table + "| y | |",
                    table + "| y | `NoCase` |"):
        assert list(unproven(tree, "SECURITY.md", promise)), promise
    assert not list(wrong_names(tree, "tests/README.md", "`tests.cmake`, `NAME.cc`, `fuzz/README.md`, `readme_test`"))
    assert wrong_command(tree, ["thalweg", "walk"]) and wrong_command(tree, ["tools/docs", "--never"]) and wrong_command(tree, ["tools/none"])
    assert wrong_command(tree, ["ctest", "-R", "^no_such_test$"]) and not wrong_command(tree, ["thalweg", "run", "--trace", "FILE"])

    wrong = []
    for page in pages:
        text = (root / page).read_text()
        wrong += [f"{page}: {what}" for found in (wrong_names, unnamed, unproven) for what in found(tree, page, text)]
        wrong += [f"{page}: {' '.join(words)}: {what}" for words in commands(text) if (what := wrong_command(tree, words))]
    for command in sorted(f for f in files if f.startswith("tools/") and os.access(root / f, os.X_OK) and "." not in pathlib.PurePath(f).name):
        if pathlib.PurePath(command).name != "peer-python" and "usage: " not in (help_of(str(root / command)) or ""):
            wrong.append(f"tools/README.md: {command} has no --help")
    print("\n".join(wrong + [f"{len(pages)} pages, {len(wrong)} things that are not there"]))
    return bool(wrong)


sys.exit(main())
