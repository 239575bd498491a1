"""Looking for the first value that is not finite.

    with thalweg.debug(nan=True):
        with thalweg.Session(g) as s:
            s.run(step, feeds)      # InvalidArgumentError: Log 'log' (made at model.py:12) on CPU:0: output 0 is the first value ...

The error names the operation, the line that made it and the ranges of its inputs."""
import threading
from typing import Any

from . import _low
from ._handle import c_text
from .eager import Eager, current_eager
from .errors import check


class _State(threading.local):
    check = "off"


_state = _State()


class debug:  # pylint: disable=invalid-name
    """In the `with`, sessions that this thread makes, also those of trainers, and ops that compute without a graph fail at the first value
    that is not finite: in a feed, in the result of an operation, or in a variable after its update. An operation that runs after another
    one has failed reports nothing, so the error is about the value from which all others follow.

    nan: refuse NaN.   inf: refuse infinities too; False for programs that mask with them.
    A session that exists already is not changed: `Session(g, check_values="finite")` makes one that checks (or "nan"). All threads that
    use the current context compute with checks while one thread is in the `with`. Gradients of a tape are checked if it recorded there."""

    def __init__(self, nan: bool = True, inf: bool = True):
        for name, value in (("nan", nan), ("inf", inf)):
            if not isinstance(value, bool):
                raise TypeError(f"debug: {name} is {value!r}; it must be True or False")
        self._check = "off" if not nan else "finite" if inf else "nan"
        self._before: list[tuple[Eager, str, str]] = []

    def __enter__(self) -> "debug":
        eager = current_eager()
        self._before.append((eager, eager._check, _state.check))
        _set(eager, self._check)
        _state.check = self._check
        return self

    def __exit__(self, *_: Any) -> None:
        eager, of_eager, _state.check = self._before.pop()
        _set(eager, of_eager)


def _set(eager: Eager, how: str) -> None:
    check(_low.tw_eager_set_check_values(eager._handle, c_text(how)))
    eager._check = how


def session_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a session that is made here and now."""
    return options if _state.check == "off" else {"check_values": _state.check, **options}
