"""Tests of the manual of ops: ops/reference is the current output of tools/docs, from the registry and ops/<family>/<file>.md; every op has
an entry; and every example prints the output below it."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import tempfile

import cases

ROOT, BUILD = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]), pathlib.Path(os.environ["THALWEG_BINARY_DIR"])
loader = importlib.machinery.SourceFileLoader("docs", str(ROOT / "tools/docs"))
docs = importlib.util.module_from_spec(importlib.util.spec_from_loader("docs", loader))
loader.exec_module(docs)

GOOD = "# Sums\n\n    >>> show(tw.ops.add_v2(1, 2))\n    3\n\nText.\n\n```python\n>>> show(tw.ops.sub(1, 2))\n-1\n```\n"
examples = docs.Examples(BUILD)
cases.holds("an example that prints what stands below it is right", examples.rewritten(GOOD) == (GOOD, []))
text, wrong = examples.rewritten(GOOD.replace("    3\n", "    4\n"))
cases.holds("an example that prints something else is found and put right", text == GOOD and "now prints" in wrong[0], f"{text}{wrong}")
text, wrong = examples.rewritten(GOOD.replace("-1\n", "-2\n"))
cases.holds("in a page, too", text == GOOD and "now prints" in wrong[0], f"{text}{wrong}")
text, wrong = examples.rewritten(GOOD.replace("add_v2", "add_v9"))
cases.holds("an example that fails is found and left alone", "add_v9" in text and "AttributeError" in wrong[0], f"{text}{wrong}")
text, wrong = examples.rewritten(GOOD.replace("    3\n", ""))
cases.holds("what an example prints is written below it", text == GOOD, text)

listed = {f"{family}/{name}.md" for family, name in re.findall(r"^OPS\((\w+), (\w+)\)", (ROOT / "ops/files.inc").read_text(), re.MULTILINE)}
for page in ROOT.glob("ops/*/*.md"):
    name = str(page.relative_to(ROOT / "ops"))
    known = name in listed or page.name == "README.md"
    cases.holds(f"ops/{name} belongs to a line of ops/files.inc, so that `thalweg` has it built in", known)

pages = sorted((ROOT / "ops/reference").glob("*/*.md"))
shown = "".join(page.read_text() for page in pages)
cases.holds("there are pages with examples", len(pages) > 100 and shown.count(">>> ") > 300, len(pages))
for page in pages:
    wrong = examples.rewritten(page.read_text())[1]
    cases.holds(f"the examples of {page.relative_to(ROOT)} print what stands below them", not wrong, "\n".join(wrong))

links = re.findall(r"\]\(([^)#]+)#([^)]+)\)", (ROOT / "ops/reference/README.md").read_text())
cases.holds("the index has a link for each op", len(links) > 300)
for page, anchor in links:
    headings = re.findall("^## (.*)$", (ROOT / "ops/reference" / page).read_text(), re.MULTILINE)
    anchors = [re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings]
    cases.holds(f"the index's link to {page}#{anchor} leads to a heading", anchor in anchors)

with tempfile.TemporaryDirectory() as folder:
    docs.generate(BUILD, folder)
    made = pathlib.Path(folder)
    for name in docs.differences(made, ROOT / "ops/reference"):
        cases.holds(f"ops/reference/{name} is what tools/docs makes; run it", False)
    some = next(made.glob("math/*.md"))
    some.write_text(some.read_text() + "more")
    (made / "math/extra.md").write_text("# Extra\n")
    changed = docs.differences(made, ROOT / "ops/reference")
    cases.holds("a page that differs, or is in one place only, is found", {"math/extra.md", str(some.relative_to(made))} <= set(changed), changed)

cases.finish()
