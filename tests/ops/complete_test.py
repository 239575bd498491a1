"""Checks that every op has an oracle: a declaration (declare.py), or hand-written tests that undeclared.py names; and that every file of
ops has a test. Prints the counts, and fails if there are fewer cases than LEAST for each op."""
import pathlib
import re

import cases
import tw
from declare import LARGE, LEAST, SMOOTH, allowed, count, declared
from undeclared import NAMED_OTHERWISE, UNDECLARED

HERE = pathlib.Path(__file__).parent
TESTS = HERE.parent
book, ops = declared(), tw.ops()
by_hand = {op: path for path, names in UNDECLARED.items() for op in names.split()}

for op in ops:
    cases.holds(f"{op} has an oracle", op in book.ops or op in by_hand, "it is not declared in tests/ops, and undeclared.py has no test of it")
    cases.holds(f"{op} has one oracle", not (op in book.ops and op in by_hand), "it is declared: take it off undeclared.py")
for op, path in by_hand.items():
    cases.holds(f"{op} in {path}", op in ops and op in (TESTS / path).read_text(), "there is no such op, or the file does not name it")
for path in sorted((TESTS.parent / "ops").glob("*/*.cc")):
    family, name = path.parent.name, path.stem
    twins = [HERE / family / f"{name}.py", HERE / f"{name}_test.py", TESTS / NAMED_OTHERWISE.get(f"{family}/{name}", "nowhere")]
    of_ops = family not in ("common", "library")
    cases.holds(f"ops/{family}/{path.name} has a test of its name", not of_ops or any(map(pathlib.Path.exists, twins)), "nor is it in undeclared.py")
for problems in (book.broken, book.unknown):
    for name in problems:
        cases.holds(name, False, "cannot be read, or declares what is no op")

with_oracle = [d for d in book.ops.values() if d.oracle]
types = {op: set().union(*allowed(d).values()) for op, d in book.ops.items()}
uses = sum(count(d) + LARGE for d in with_oracle) + len(book.expected)
drawn = [op for op in ops if not by_hand.get(op, "").startswith(("python/data_", "python/text_"))]  # they take no drawn numbers
cases.holds("cases for each op", uses >= LEAST * len(drawn), f"{uses} for {len(drawn)} ops, fewer than {LEAST} each")

smooth = [op for op, about in ops.items() if not about["no_gradient"]]
drawn = [op for op in smooth if op in book.ops and not book.ops[op].no_gradient]
once = [op for op in drawn if not book.ops[op].second]
print(f"{len(ops)} ops, {sum(len(about['kernels']) for about in ops.values())} kernels, {sum(map(len, types.values()))} pairs of op and type")
print(f"{uses} uses against oracles, {uses / len(ops):.1f} for each op, most of them in {len(tw.WAYS)} ways; {len(book.refused)} refusals")
print(f"{len(smooth)} ops with a gradient: {SMOOTH} uses each of {len(drawn)}, and {len(book.sloped)} more; second derivatives of all but {len(once)}:")
for op in once:
    print(f"  {op}: {book.ops[op].why}")
reasons = {op: d.no_oracle for op, d in book.ops.items() if d.no_oracle}
print(f"{len(with_oracle)} ops declared, {len(by_hand)} with cases written by hand, {len(reasons)} whose effects a test looks at:")
for op, why in reasons.items():
    named = re.search(r"\w+_test\.py", why)
    cases.holds(f"{op} has an oracle", named and op in (HERE / named[0]).read_text(), f"'{why}' names no test that names it")
unchecked = {op: d.no_gradient for op, d in book.ops.items() if d.no_gradient and op in smooth}
print(f"{len(unchecked)} declared gradients are not drawn:")
for op, why in unchecked.items():
    print(f"  {op}: {why}")
cases.finish()
