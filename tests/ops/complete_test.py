"""Every op has an oracle: a declaration (declare.py), or tests written by hand that undeclared.py names. Prints the counts."""
import pathlib

import cases
import tw
from declare import declared
from undeclared import UNDECLARED

TESTS = pathlib.Path(__file__).parent.parent
book, ops = declared(), tw.ops()
by_hand = {op: path for path, names in UNDECLARED.items() for op in names.split()}

for op in ops:
    cases.holds(f"{op} has an oracle", op in book.ops or op in by_hand, "it is not declared in tests/ops, and undeclared.py has no test of it")
    cases.holds(f"{op} has one oracle", not (op in book.ops and op in by_hand), "it is declared: take it off undeclared.py")
for op, path in by_hand.items():
    cases.holds(f"{op} in {path}", op in ops and op in (TESTS / path).read_text(), "there is no such op, or the file does not name it")
for problems in (book.broken, book.unknown):
    for name in problems:
        cases.holds(name, False, "cannot be read, or declares what is no op")

reasons = {op: d.no_oracle for op, d in book.ops.items() if d.no_oracle}
smooth = [op for op, about in ops.items() if not about["no_gradient"]]
unchecked = {op: d.no_gradient for op, d in book.ops.items() if d.no_gradient and op in smooth}
print(f"{len(ops)} ops, {sum(len(about['kernels']) for about in ops.values())} kernels, {len(smooth)} with a gradient")
print(f"{len(book.ops) - len(reasons)} declared with an oracle, {len(by_hand)} with cases written by hand, {len(reasons)} with a reason:")
for op, why in reasons.items():
    print(f"  {op}: {why}")
print(f"{len(unchecked)} declared gradients are not drawn:")
for op, why in unchecked.items():
    print(f"  {op}: {why}")
cases.finish()
