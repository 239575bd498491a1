"""Rewrites a Python function so that its `if`, `while`, `for`, `and`, `or`, `not`, chained comparisons and calls become calls of the module
`control`, which decides at the time of the call whether a value of a graph decides.

    if x > 0:                       def then(): nonlocal y; y = x
        y = x               ->      def otherwise(): nonlocal y; y = -x
    else:                           ag__.if_(x > 0, then, otherwise, get, set, ("y",), ())
        y = -x

`break`, `continue` and early `return` are first written as flags, and what follows a conditional jump goes into the branches that do not
jump. Lines stay those of the source, so that errors and tracebacks name them."""
import ast
import copy
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Optional, Union

_HERE = os.path.dirname(__file__) + os.sep
_LEFT_ALONE = set(sys.stdlib_module_names) | {"numpy", "thalweg", "pytest", "_pytest", "torch", "jax", "tensorflow"}
_CHANGES = {"append", "extend", "insert", "add", "update", "pop", "popitem", "remove", "clear", "setdefault", "discard"}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class CannotRewrite(Exception):
    """Why a function stays as it is."""


Effect = tuple[int, str]  # a line, and its statement


class Rewritten:
    """The code of a function after rewriting, to be combined with the closure and globals of one function object."""

    def __init__(self, code: types.CodeType, effects: list[Effect]):
        self.code, self.effects = code, effects

    def function_of(self, function: Any, control: Any) -> Callable[..., Any]:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        cells["ag__"] = types.CellType(control)
        made = types.FunctionType(self.code, function.__globals__, function.__name__, function.__defaults__,
                                  tuple(cells[name] for name in self.code.co_freevars))
        made.__kwdefaults__, made.__qualname__, made.__module__ = function.__kwdefaults__, function.__qualname__, function.__module__
        made.__dict__.update(function.__dict__)
        return made


_known: dict[types.CodeType, Union[Rewritten, CannotRewrite]] = {}


def is_program(function: Any) -> bool:
    """Whether it is a function of the program, which is rewritten where it can be."""
    if not isinstance(function, types.FunctionType) or "ag__" in function.__code__.co_freevars:
        return False
    root = (function.__module__ or "").partition(".")[0]
    return root not in _LEFT_ALONE and not function.__code__.co_filename.startswith(_HERE)


def rewritten(function: types.FunctionType) -> Rewritten:
    """The rewritten form. Raises CannotRewrite with the reason."""
    known = _known.get(function.__code__)
    if known is None:
        try:
            known = _rewrite(function)
        except CannotRewrite as e:
            known = e
        _known[function.__code__] = known
    if isinstance(known, CannotRewrite):
        raise known
    return known


def _rewrite(function: types.FunctionType) -> Rewritten:
    code = function.__code__
    if code.co_name == "<lambda>":
        raise CannotRewrite("a lambda is not rewritten; write `def`")
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise CannotRewrite("generators and coroutines are not rewritten")
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        raise CannotRewrite("its source is not to be found; it must be in a file or a notebook cell") from None
    indented = source[:1].isspace()
    try:
        tree = ast.parse("if 1:\n" + source if indented else source)
    except SyntaxError:
        raise CannotRewrite("its source is not a statement by itself") from None
    node: Any = tree.body[0].body[0] if indented else tree.body[0]  # type: ignore[attr-defined]
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        raise CannotRewrite("its source is not a statement by itself")
    ast.increment_lineno(node, code.co_firstlineno - (2 if indented else 1))
    _refuse(node)
    effects = list(_effects(node.body, set(), nested=True))
    made = _function(node, source)
    made.decorator_list, made.returns = [], None
    factory = ast.FunctionDef(name="ag__factory", args=_arguments(["ag__", *code.co_freevars]), body=[made, ast.Return(_name(made.name))],
                              decorator_list=[])
    ast.copy_location(factory, node)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    space: dict[str, Any] = {}
    exec(compile(module, code.co_filename, "exec"), space)  # pylint: disable=exec-used
    return Rewritten(space["ag__factory"](None, *code.co_freevars).__code__, effects)


def _refuse(node: ast.AST) -> None:
    for x in ast.walk(node):
        name = x.id if isinstance(x, ast.Name) else x.attr if isinstance(x, ast.Attribute) else ""
        if name.startswith("__") and not name.endswith("__"):
            raise CannotRewrite(f"line {getattr(x, 'lineno', 0)}: a class renames `{name}`, so it has another name outside of the class")
        if isinstance(x, ast.Try) and any(_jumps(s, (ast.Return, ast.Break, ast.Continue)) for s in [*x.body, *x.orelse, *x.finalbody]
                                          + [s for h in x.handlers for s in h.body]):
            raise CannotRewrite(f"line {x.lineno}: `try` with `return`, `break` or `continue` in it")
        if isinstance(x, (ast.Match, ast.AsyncFor, ast.AsyncWith)):
            raise CannotRewrite(f"line {x.lineno}: `match` and `async` are not rewritten")


# ---- Small parts of syntax ----

def _name(name: str, context: Any = None) -> ast.Name:
    return ast.Name(name, context or ast.Load())


def _arguments(names: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _of_control(name: str) -> ast.Attribute:
    return ast.Attribute(_name("ag__"), name, ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_of_control(name), list(arguments), [])


def _assign(name: str, value: Any) -> ast.Assign:
    return ast.Assign([_name(name, ast.Store())], value if isinstance(value, ast.AST) else ast.Constant(value), lineno=0)


def _thunk(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(_arguments([]), value)


def _at(place: ast.AST, nodes: Any) -> Any:
    """Gives new nodes the lines of the statement that they stand for."""
    for node in nodes if isinstance(nodes, list) else [nodes]:
        for x in ast.walk(node):
            if not getattr(x, "lineno", 0) and isinstance(x, (ast.stmt, ast.expr, ast.arg)):
                ast.copy_location(x, place)
                x.end_lineno, x.end_col_offset = x.lineno, x.col_offset  # calls of attributes count as being on their last line
    return nodes


def _jumps(node: ast.AST, kinds: Any) -> bool:
    """Whether a jump of these kinds is in the statement; `break` and `continue` of loops inside do not count."""
    if isinstance(node, kinds):
        return True
    if isinstance(node, _SCOPES):
        return False
    if isinstance(node, (ast.While, ast.For)):
        inner = tuple(k for k in (kinds if isinstance(kinds, tuple) else (kinds,)) if k is ast.Return)
        return any(_jumps(s, inner) for s in node.body if inner) or any(_jumps(s, kinds) for s in node.orelse)
    return any(_jumps(child, kinds) for child in ast.iter_child_nodes(node))


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that the statements bind, without those of scopes inside."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            continue
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ExceptHandler):
            found |= ({node.name} if node.name else set()) | _stored(ast.iter_child_nodes(node))
        else:
            found |= _stored(ast.iter_child_nodes(node))
    return found


def _outer(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that are declared global or nonlocal."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found |= set(node.names)
        elif not isinstance(node, _SCOPES):
            found |= _outer(ast.iter_child_nodes(node))
    return found


def _effects(statements: Iterable[ast.AST], outer: set[str], nested: bool = False) -> Iterator[Effect]:
    """The statements that change objects: attributes, elements, names outside of the function. nested: of a whole function."""
    statements = list(statements)
    outer = outer | (_outer(statements) if nested else set())
    own = _stored(statements)
    todo = list(statements)
    while todo:
        node = todo.pop(0)
        if isinstance(node, _SCOPES):
            continue
        targets: list[Any] = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else \
            [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []
        changed = any(_changes(t, own, outer) for t in targets)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            base = node.value.func.value
            changed = node.value.func.attr in _CHANGES and isinstance(base, (ast.Name, ast.Attribute)) and not _is_own(base, own, outer)
        if changed:
            yield node.lineno, ast.unparse(node)  # type: ignore[attr-defined]
        todo[:0] = list(ast.iter_child_nodes(node))


def _is_own(base: ast.AST, own: set[str], outer: set[str]) -> bool:
    return isinstance(base, ast.Name) and base.id in own and base.id not in outer


def _changes(target: ast.AST, own: set[str], outer: set[str]) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_changes(t, own, outer) for t in target.elts)
    if isinstance(target, ast.Name):
        return target.id in outer
    return isinstance(target, (ast.Attribute, ast.Subscript)) and not _is_own(target.value, own, outer)


# ---- Jumps ----

class _Jumps:
    """What a jump becomes in one block, and what ends the block where nothing jumps."""

    def __init__(self, leave: Any = None, stop: Any = None, skip: Any = None, end: Any = lambda: []):
        self.leave, self.stop, self.skip, self.end = leave, stop, skip, end

    def kinds(self) -> tuple[type, ...]:
        return tuple(k for k, f in ((ast.Return, self.leave), (ast.Break, self.stop), (ast.Continue, self.skip)) if f is not None)


class _Lowering:
    """Writes jumps as flags."""

    def __init__(self) -> None:
        self.n = 0

    def block(self, statements: Sequence[ast.stmt], jumps: _Jumps) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, s in enumerate(statements):
            rest = list(statements[i + 1:])
            if isinstance(s, ast.Return):
                return out + _at(s, jumps.leave(s.value or ast.Constant(None))) if jumps.leave else [*out, s]
            if isinstance(s, (ast.Break, ast.Continue)):
                return out + _at(s, (jumps.stop if isinstance(s, ast.Break) else jumps.skip)())
            if isinstance(s, (ast.While, ast.For)):
                before, after = self.loop(s)
                out += [*_at(s, before), s]
                if after:
                    return out + self.block(_at(s, after) + rest, jumps)
            elif jumps.kinds() and _jumps(s, jumps.kinds()) and isinstance(s, ast.If):
                body = self.block(s.body + copy.deepcopy(rest), jumps)
                orelse = self.block(s.orelse + rest, jumps)
                return [*out, ast.copy_location(ast.If(s.test, body or _at(s, [ast.Pass()]), orelse), s)]
            elif jumps.kinds() and _jumps(s, jumps.kinds()) and isinstance(s, ast.With):
                flags, inner = self.flags()
                s.body = self.block(s.body, inner) or _at(s, [ast.Pass()])
                before = [_assign(f, False) for f, _ in flags]
                return [*out, *_at(s, before), s, *self.block(_at(s, [ast.If(_name(f), [jump], []) for f, jump in flags
                                                                      if isinstance(jump, jumps.kinds())]) + rest, jumps)]
            else:
                self.inside(s, jumps)
                out.append(s)
        return out + (_at(statements[-1], jumps.end()) if statements else jumps.end())

    def inside(self, s: ast.stmt, jumps: _Jumps) -> None:
        """Loops inside of a statement that does not jump."""
        plain = _Jumps(jumps.leave, jumps.stop, jumps.skip)
        for field in ("body", "orelse", "finalbody"):
            if not isinstance(s, _SCOPES) and isinstance(getattr(s, field, None), list) and getattr(s, field):
                setattr(s, field, self.block(getattr(s, field), plain))
        for handler in getattr(s, "handlers", ()):
            handler.body = self.block(handler.body, plain)

    def flags(self) -> tuple[list[tuple[str, Any]], _Jumps]:
        self.n += 1
        done, stop, skip, value = (f"ag__{what}_{self.n}" for what in ("done", "stopped", "skipped", "value"))
        inner = _Jumps(lambda v: [_assign(value, v), _assign(done, True)], lambda: [_assign(stop, True)], lambda: [_assign(skip, True)])
        return [(done, ast.Return(_name(value))), (stop, ast.Break()), (skip, ast.Continue())], inner

    def loop(self, s: Any) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Writes a loop's jumps as flags; returns statements before and after it."""
        returns, breaks = any(_jumps(x, ast.Return) for x in s.body), any(_jumps(x, ast.Break) for x in s.body)
        self.n += 1
        stopped, done, value = f"ag__stopped_{self.n}", f"ag__done_{self.n}", f"ag__value_{self.n}"
        inner = _Jumps((lambda v: [_assign(value, v), _assign(done, True), _assign(stopped, True)]) if returns else None,
                       lambda: [_assign(stopped, True)], lambda: [])
        s.body = self.block(s.body, inner) or _at(s, [ast.Pass()])
        before, after = [], list(s.orelse)
        s.stopped = None
        if returns or breaks:
            before.append(_assign(stopped, False))
            s.stopped = stopped
            if isinstance(s, ast.While):
                s.test = _at(s, ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), _name(stopped)), s.test]))
            if s.orelse:
                after = [ast.If(ast.UnaryOp(ast.Not(), _name(stopped)), s.orelse, [])]
        if returns:
            before.append(_assign(done, False))
            after.insert(0, ast.If(_name(done), [ast.Return(_name(value))], []))
        s.orelse = []
        return before, after


# ---- Statements and expressions ----

def _function(node: ast.FunctionDef, source: str) -> ast.FunctionDef:
    """The rewritten function."""
    lowering = _Lowering()
    early = any(_jumps(s, ast.Return) for s in node.body[:-1]) or (_jumps(node.body[-1], ast.Return)
                                                                  and not isinstance(node.body[-1], ast.Return))
    if early:
        jumps = _Jumps(lambda v: [_assign("ag__value", v)], end=lambda: [_assign("ag__value", None)])
        body = lowering.block(node.body, jumps) + _at(node.body[-1], [ast.Return(_name("ag__value"))])
    else:
        body = lowering.block(node.body, _Jumps())
    writer = _Writer(_outer(node.body))
    new = [y for s in body for y in writer.statement(s)]
    own = {a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg] if a}
    unset = [_at(node.body[0], _assign(n, _call("Undefined", ast.Constant(n)))) for n in sorted(writer.states - own)]
    made = copy.copy(node)
    made.args = copy.deepcopy(node.args)
    made.args.defaults = [_at(node, ast.Constant(None)) for _ in node.args.defaults]
    made.args.kw_defaults = [None if d is None else _at(node, ast.Constant(None)) for d in node.args.kw_defaults]
    for a in ast.walk(made.args):
        if isinstance(a, ast.arg):
            a.annotation = None
    has_doc = bool(new) and isinstance(new[0], ast.Expr) and isinstance(new[0].value, ast.Constant) and isinstance(new[0].value.value, str)
    made.body = new[:has_doc] + unset + new[has_doc:]
    return made


class _Writer(ast.NodeTransformer):
    """Writes the statements and expressions of one function."""

    def __init__(self, outer: set[str]):
        self.outer, self.states, self.n = outer, set[str](), 0

    def statement(self, s: ast.stmt) -> list[ast.stmt]:
        made = self.visit(s)
        return made if isinstance(made, list) else [made]

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [y for s in statements for y in self.statement(s)]

    def _state(self, place: ast.stmt, statements: Sequence[ast.AST], extra: set[str]) -> tuple[list[str], Any, list[ast.stmt]]:
        """The names that a statement binds, what declares them in its functions, and the functions that get and set them."""
        self.n += 1
        names = sorted((_stored(statements) | extra) - self.outer)
        self.states |= set(names)
        declared: list[ast.stmt] = [ast.Nonlocal(list(names))] if names else []
        values = ast.Tuple([_name(n) for n in names], ast.Load())
        targets = ast.Tuple([_name(n, ast.Store()) for n in names], ast.Store())
        get = self._def(f"ag__get_{self.n}", [], [ast.Return(values)])
        put = self._def(f"ag__set_{self.n}", ["ag__s"], [*copy.deepcopy(declared), ast.Assign([targets], _name("ag__s"), lineno=0)]
                        if names else [ast.Pass()])
        return names, declared, _at(place, [get, put])

    @staticmethod
    def _def(name: str, arguments: Sequence[str], body: Sequence[ast.stmt]) -> ast.FunctionDef:
        return ast.FunctionDef(name=name, args=_arguments(arguments), body=list(body), decorator_list=[], lineno=0)

    def _rest(self, names: Sequence[str], effects: Iterable[Effect]) -> list[ast.expr]:
        lines = [ast.Tuple([ast.Constant(n), ast.Constant(t)], ast.Load()) for n, t in effects]
        return [_name(f"ag__get_{self.n}"), _name(f"ag__set_{self.n}"), ast.Tuple([ast.Constant(n) for n in names], ast.Load()),
                ast.Tuple(lines, ast.Load())]

    def visit_If(self, s: ast.If) -> Any:
        names, declared, functions = self._state(s, [*s.body, *s.orelse], set())
        n, rest = self.n, self._rest(names, _effects([*s.body, *s.orelse], self.outer))
        test = self.visit(s.test)
        then = self._def(f"ag__then_{n}", [], [*declared, *self.block(s.body)])
        other = self._def(f"ag__else_{n}", [], [*copy.deepcopy(declared), *(self.block(s.orelse) or [ast.Pass()])])
        return [*functions, *_at(s, [then, other, ast.Expr(_call("if_", test, _name(then.name), _name(other.name), *rest))])]

    def visit_While(self, s: ast.While) -> Any:
        names, declared, functions = self._state(s, s.body, set())
        n, rest = self.n, self._rest(names, _effects(s.body, self.outer))
        test = self._def(f"ag__test_{n}", [], [ast.Return(self.visit(s.test))])
        body = self._def(f"ag__body_{n}", [], [*declared, *self.block(s.body)])
        return [*functions, *_at(s, [test, body, ast.Expr(_call("while_", _name(test.name), _name(body.name), *rest))])]

    def visit_For(self, s: Any) -> Any:
        names, declared, functions = self._state(s, [s.target, *s.body], {s.stopped} if s.stopped else set())
        n, rest = self.n, self._rest(names, _effects(s.body, self.outer))
        taken = _at(s, ast.Assign([s.target], _name("ag__item"), lineno=0))
        body = self._def(f"ag__body_{n}", ["ag__item"], [*declared, *self.block([taken, *s.body])])
        items = self.visit(s.iter)
        return [*functions, *_at(s, [body, ast.Expr(_call("for_", items, _name(body.name), *rest, ast.Constant(s.stopped)))])]

    def visit_FunctionDef(self, s: ast.FunctionDef) -> Any:
        made = _function(s, "")
        made.decorator_list = [self.visit(d) for d in s.decorator_list]
        made.args.defaults = [self.visit(d) for d in s.args.defaults]
        made.args.kw_defaults = [None if d is None else self.visit(d) for d in s.args.kw_defaults]
        return made

    def visit_AsyncFunctionDef(self, s: Any) -> Any:
        return s

    def visit_ClassDef(self, s: Any) -> Any:
        return s

    def visit_Assert(self, s: ast.Assert) -> Any:
        told = _thunk(self.visit(s.msg) if s.msg else ast.Constant(None))
        return _at(s, ast.Expr(_call("assert_", self.visit(s.test), told)))

    def _lazy(self, x: ast.expr) -> bool:
        """Whether the parts of an expression may go into functions of their own."""
        return not any(isinstance(y, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for y in ast.walk(x))

    def visit_BoolOp(self, x: ast.BoolOp) -> Any:
        if not self._lazy(x):
            return self.generic_visit(x)
        name = "and_" if isinstance(x.op, ast.And) else "or_"
        return _at(x, _call(name, *(_thunk(self.visit(v)) for v in x.values)))

    def visit_UnaryOp(self, x: ast.UnaryOp) -> Any:
        self.generic_visit(x)
        return _at(x, _call("not_", x.operand)) if isinstance(x.op, ast.Not) else x

    def visit_IfExp(self, x: ast.IfExp) -> Any:
        if not self._lazy(x):
            return self.generic_visit(x)
        return _at(x, _call("choose", self.visit(x.test), _thunk(self.visit(x.body)), _thunk(self.visit(x.orelse))))

    def visit_Compare(self, x: ast.Compare) -> Any:
        if len(x.ops) == 1 or not self._lazy(x):
            return self.generic_visit(x)
        terms = [self.visit(t) for t in (x.left, *x.comparators)]
        names = [f"ag__t{i}" for i in range(len(terms))]
        pairs = [_thunk(ast.Compare(_name(names[i]), [op], [_name(names[i + 1])])) for i, op in enumerate(x.ops)]
        return _at(x, ast.Call(ast.Lambda(_arguments(names), _call("and_", *pairs)), terms, []))

    def visit_Call(self, x: ast.Call) -> Any:
        plain = isinstance(x.func, ast.Name) and x.func.id in ("super", "locals", "globals", "vars", "eval", "exec")
        self.generic_visit(x)
        if not plain:
            x.func = _at(x, _call("call", x.func))
        return x


def file_and_line(function: Any, line: Optional[int] = None) -> str:
    """Where a function is, for messages."""
    code = function.__code__
    return f"{code.co_filename}:{line or code.co_firstlineno}"
