"""Modules: parts of a network that own their variables, name them and list them.

    class Encoder(thalweg.nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden, self.out = thalweg.nn.Dense(128, "relu"), thalweg.nn.Dense(10)

        def forward(self, x):
            return self.out(self.hidden(x))

A module makes its variables when it is called for the first time, in the graph of its input, so that sizes follow from the input. Later
calls share them. Names of variables begin with the name of the module. Without a graph a module computes at once, with variables that have
their values at once; inside `with thalweg.nn.in_training():` it computes as in training."""
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Optional

from . import at_once, build, control, scopes, traced
from .errors import Error
from .output import Formula, Output, shape_text
from .variable import Variable

if TYPE_CHECKING:
    from .graph import Graph


def _tell(error: Error, module: "Module") -> None:
    """Begins the message of an error with the path of the innermost module in which it was raised: "module 'sequential/dense': ..."."""
    path, message = getattr(error, "_module", ("", error.message))
    path = path if path.startswith(f"{module.name}/") else f"{module.name}/{path}" if path else module.name
    error._module = path, message  # type: ignore[attr-defined]
    error.message = message if f"'{path}'" in message else f"module '{path}': {message}"
    error.args = (error.message, *error.args[1:])


class Module:
    """Base class of layers and models. Define `forward`; call the module itself.

    name: prefix of its variables; None: the name of the class in lower case. A name in use gets a number."""

    def __init__(self, name: Optional[str] = None):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: name is {name!r}; it must be a text, or None")
        self._wanted, self._prefix = name or type(self).__name__.lower(), ""
        self._frozen: set[int] = set()  # variables that freeze made untrainable
        self._graph: Optional["Graph"] = None
        self._shape: Any = None  # shape of the latest result

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Computes the module's result; each class defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(); write it and call the module itself")

    def build(self, *inputs: Any, **named: Any) -> None:
        """Makes the module's own variables. Called once, before the first forward and with its arguments."""

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if not hasattr(self, "_wanted"):
            raise RuntimeError(f"{type(self).__name__}.__init__ did not call super().__init__() first")
        try:
            return self._called(inputs, named)
        except Error as e:
            _tell(e, self)
            raise

    def _called(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        context = at_once.context_of([*inputs, *named.values()])
        if context is not None:
            return self._computed(context, inputs, named)
        given = build.graph_of([*inputs, *named.values()])
        if given is not None:  # in a body, also where the values are from around it
            given = scopes.working(scopes.building(given, f"module '{self.name}' adds operations"))
        graph = scopes.current().graph if given is None else given
        outermost = graph
        while outermost.outer is not None:
            outermost = outermost.outer
        owner: Any = outermost if outermost.traces is None else outermost.traces
        if self._graph is None and outermost.traces is not None:
            traced.build_module(self, graph, inputs, named)
        if self._graph is None:
            home, prefix = graph, scopes.current(graph).prefix  # of its variables
            while home.makes_variables_outside and home.outer is not None:
                home = home.outer
                prefix = prefix or scopes.current(home).prefix
            self._prefix = home._new_prefix(prefix + self._wanted)
            try:
                if type(self).build is not Module.build:
                    with scopes.name_scope(self._prefix, home), scopes.making_variables(home):
                        self.build(*inputs, **named)
            except BaseException:
                self._prefix = ""
                raise
            self._graph = outermost
        elif self._graph is not owner:
            raise ValueError(f"module '{self.name}' has its variables in another graph than its input; "
                             "make a module of its own for this graph, or save and restore the weights")
        with scopes.name_scope(self._prefix, graph):
            result = (control.converted(self.forward) if outermost.rewrites else self.forward)(*inputs, **named)
        self._shape = result.shape if isinstance(result, Output) else None
        return result

    def _computed(self, context: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Computes the result without a graph."""
        if self._graph is None:
            self._prefix = at_once.new_prefix(context, self._wanted)
            try:
                with at_once.named(self._prefix):
                    self._begin(context, inputs, named)
            except BaseException:
                self._prefix = ""
                raise
            self._graph = context
        elif self._graph is not context:
            raise ValueError(f"module '{self.name}' has its variables in another graph or context than its input; "
                             "make a module of its own for this one, or save and restore the weights")
        with at_once.named(self._prefix):
            result = self._result(inputs, named)
        self._shape = result.shape if isinstance(result, Output) else None
        return result

    def _begin(self, context: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Prepares computing without a graph. A layer whose operations C adds does so in its own way (Leaf)."""
        self.build(*inputs, **named)

    def _result(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return self.forward(*inputs, **named)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy.deepcopy: the attributes, with the contents of the variables. Raises TypeError for a module whose variables
        are in a graph."""
        if self._graph is not None and not self._graph.computes:
            raise TypeError(f"module '{self.name}' has its variables in a graph, whose sessions have their contents; save it by thalweg.save or "
                            "thalweg.Saver, or copy it before its first call")
        own = [v for value in vars(self).values() for v in _within(value, Variable)]
        state = {k: v for k, v in vars(self).items() if k != "_at_once"}
        return {**state, "_graph": self._graph is not None, "_frozen": [i for i, v in enumerate(own) if id(v.handle) in self._frozen]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from .eager import current_eager
        vars(self).update(state)
        own = [v for value in vars(self).values() for v in _within(value, Variable)]
        self._graph = current_eager() if state["_graph"] else None  # type: ignore[assignment]
        self._frozen = {id(own[i].handle) for i in state["_frozen"]}

    @property
    def name(self) -> str:
        """The prefix of its variables; before the first call, the requested name."""
        return self._prefix.rstrip("/") or self._wanted

    def _check_outside(self) -> None:
        """Raises ValueError if the variables of the module would be made inside a function."""
        if scopes.current().graph.outer is not None:
            raise ValueError(f"module '{self.name}' is called for the first time inside a function; "
                             "call it once outside, where its variables go")

    def children(self) -> Iterator["Module"]:
        """Returns the modules that are attributes of this one, or elements of lists, tuples and dicts there, in the order of setting."""
        for value in list(vars(self).values()):
            yield from _within(value, Module)

    def parameters(self, trainable: Optional[bool] = None) -> list[Variable]:
        """Returns the variables of the module and of its inner modules, each once. trainable: None: all; True or False: only those.
        Raises RuntimeError if a module was not called yet, because it has no variables."""
        found: dict[int, Variable] = {}
        for module in self._all():
            if module._graph is None:
                raise RuntimeError(f"module '{module.name}' was not called yet, so it has no variables; call it once before you list them")
            for value in vars(module).values():
                for variable in _within(value, Variable):
                    found.setdefault(id(variable.handle), variable)
        return [v for v in found.values() if trainable is None or v.trainable is trainable]

    def named_parameters(self) -> dict[str, Variable]:
        """Returns the same variables by name."""
        return {v.name: v for v in self.parameters()}

    def freeze(self, frozen: bool = True) -> None:
        """Makes the variables untrainable by default. False: reverts this for variables that freeze changed. Averages of batch
        normalisation still move. Raises RuntimeError if a module was not called yet, because it has no variables."""
        self.parameters()
        for module in self._all():
            for value in vars(module).values():
                for variable in _within(value, Variable):
                    key = id(variable.handle)
                    if frozen and variable.trainable:
                        module._frozen.add(key)
                        variable._train(False)
                    elif not frozen and key in module._frozen:
                        module._frozen.discard(key)
                        variable._train(True)

    def summary(self) -> str:
        """Returns a table of the modules, with the shape of the latest result and the number of own and inner parameters."""
        rows = [("module", "class", "result", "parameters")]
        for depth, module in self._tree(0):
            count = sum(_size(v) for v in module.parameters())
            rows.append(("  " * depth + module.name.rsplit("/", 1)[-1], type(module).__name__, shape_text(module._shape) if module._shape is not None else "",
                         f"{count:,}"))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = ["  ".join((*(row[i].ljust(widths[i]) for i in range(3)), row[3].rjust(widths[3]))).rstrip() for row in rows]
        lines.insert(1, "-" * len(lines[0]))
        trained = sum(_size(v) for v in self.parameters(trainable=True))
        return "\n".join([*lines, f"{sum(_size(v) for v in self.parameters()):,} parameters, {trained:,} of them trained"])

    def _tree(self, depth: int, around: tuple["Module", ...] = ()) -> Iterator[tuple[int, "Module"]]:
        """Gives the module and its inner modules, with their depth. A reference to an outer module is not followed."""
        yield depth, self
        for child in self.children():
            if not any(child is module for module in (*around, self)):
                yield from child._tree(depth + 1, (*around, self))

    def _all(self) -> Iterator["Module"]:
        """Gives the module and its inner modules, each once."""
        todo: list["Module"] = [self]
        known: set[int] = set()
        while todo:
            module = todo.pop()
            if id(module) not in known:
                known.add(id(module))
                yield module
                todo += reversed(list(module.children()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}'>"


class Leaf(Module):
    """A module whose forward adds operations to a graph only. Without a graph, these are run one after the other (at_once)."""

    def _begin(self, context: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._at_once = at_once.AtOnce(context, self)

    def _result(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if "_at_once" not in vars(self):  # of a copy
            self._begin(self._graph, inputs, named)
        return self._at_once(self._number_type(), inputs, named)

    def _number_type(self) -> Any:
        """The type of arrays of numbers among the inputs; None: their own."""
        return "float32"


def _within(value: Any, kind: type) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _within(one, kind)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _within(one, kind)


def _size(variable: Variable) -> int:
    size = 1
    for dim in variable.shape or ():
        size *= dim or 0
    return size


class Sequential(Module):
    """Applies modules, or other functions of one value, one after the other."""

    def __init__(self, *parts: Callable[[Any], Any], name: Optional[str] = None):
        super().__init__(name)
        for part in parts:
            if not callable(part) or isinstance(part, type):
                raise TypeError(f"{part!r} is neither a module nor a function of one value" +
                                (f"; it is a class: write {part.__name__}(...)" if isinstance(part, type) else ""))
        self.parts = list(parts)

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, i: int) -> Callable[[Any], Any]:
        return self.parts[i]


class Residual(Module):
    """x + inner(x)."""

    def __init__(self, inner: Callable[[Any], Any], name: Optional[str] = None):
        super().__init__(name)
        self.inner = inner

    def forward(self, x: Formula) -> Formula:
        return x + self.inner(x)


class Concat(Module):
    """The results of modules, or of other functions of one value, for the same input, one behind the other along an axis."""

    def __init__(self, *parts: Callable[[Any], Any], axis: int = -1, name: Optional[str] = None):
        super().__init__(name)
        if not parts:
            raise ValueError("Concat has no parts; give the modules whose results it joins")
        self.parts, self.axis = Sequential(*parts).parts, axis

    def forward(self, x: Any) -> Any:
        results = [part(x) for part in self.parts]
        return results[0].graph.op("ConcatV2", results, self.axis)
