"""Every op of the runtime as a function, those of plugins too, under its own name and in lower case: MatMul and mat_mul.

    y = ops.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME")

Inputs come in order or by name: values, variables, numbers, arrays; lists of them where the op takes several. Attributes come by name and
may be left out where they have defaults or follow from the inputs. `name=` names the operation. Names that are keywords of Python end in an
underscore. A function returns the value of an op with one output, the operation of an op with none, else a named tuple.
help(ops.conv2d) shows one; dir(ops) lists all."""
import typing as _typing

from . import op_functions as _functions

# Other names here are private, because any public name may be that of an op.


def __getattr__(name: str) -> _typing.Any:
    if name.startswith("__"):
        raise AttributeError(name)
    op = _functions.names().get(name) or _functions.names(fresh=True).get(name)
    if op is None:
        told = _functions.meant(name)
        raise AttributeError(f"no op is called '{name}'; " + (told and f"{told}; ") +
                             "`dir(thalweg.ops)` lists all, `graph.op` adds those of another runtime")
    globals()[name] = _functions.of(op)  # later look-ups find it at once
    return globals()[name]


def __dir__() -> list[str]:  # for completion: each op once, although both of its names work
    return sorted(name for name, op in _functions.names().items() if name == _functions.snake_case(op))
