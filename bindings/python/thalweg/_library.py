"""Finds and loads libthalweg.so, and gives its functions their ctypes signatures.

A call releases Python's global lock while it runs, so that other threads continue."""
import ctypes
import os
import pathlib
from collections.abc import Callable
from typing import Any

NAME = "libthalweg.so.0"


def _candidates() -> list[str]:
    """Returns possible paths of the library, best first."""
    named = os.environ.get("THALWEG_LIBRARY")
    if named:
        return [named]
    package = pathlib.Path(__file__).absolute().parent
    beside = package / "lib" / NAME                          # an installed wheel
    built = package.parent.parent / "lib" / "libthalweg.so"  # <build>/python/thalweg and <build>/lib
    return [str(path) for path in (beside, built) if path.exists()] + [NAME]


def _load() -> tuple[ctypes.CDLL, str]:
    found = _candidates()
    try:
        return ctypes.CDLL(found[0]), found[0]
    except OSError as e:
        raise ImportError(f"cannot load Thalweg's library '{found[0]}': {e}; set THALWEG_LIBRARY to the path of libthalweg.so") from None


_library, path = _load()


def bind(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Returns the function of that name. If an older library does not have it, the function fails when it is called."""
    try:
        function = getattr(_library, name)
    except AttributeError:
        def missing(*_: Any) -> Any:
            raise ImportError(f"'{path}' has no {name}; it is older than this package")
        return missing
    function.restype, function.argtypes = result, arguments
    return function
