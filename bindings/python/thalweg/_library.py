"""Finds and loads libthalweg.so, and gives its functions their ctypes signatures.

A call releases Python's global lock while it runs, so that other threads continue."""
import ctypes
import importlib.machinery
import importlib.metadata
import os
import pathlib
from collections.abc import Callable
from typing import Any

NAME = "libthalweg.so.0"
PLUGINS = "thalweg.plugins"  # the group of entry points by which installed packages bring plugins


def _candidates() -> list[str]:
    """Returns possible paths of the library, best first."""
    named = os.environ.get("THALWEG_LIBRARY")
    if named:
        return [named]
    package = pathlib.Path(__file__).absolute().parent
    beside = package / "lib" / NAME                          # an installed wheel
    installed = package.parent.parent.parent / NAME          # <prefix>/lib/thalweg/python/thalweg and <prefix>/lib
    built = package.parent.parent / "lib" / "libthalweg.so"  # <build>/python/thalweg and <build>/lib
    return [str(path) for path in (beside, installed, built) if path.exists()] + [NAME]


def _load() -> tuple[ctypes.CDLL, str]:
    found = _candidates()
    try:
        return ctypes.CDLL(found[0]), _place(found[0])
    except OSError as e:
        raise ImportError(f"cannot load Thalweg's library '{found[0]}': {e}; set THALWEG_LIBRARY to the path of libthalweg.so") from None


def _place(name: str) -> str:
    """Returns the path of a loaded library. If only its name is known, because the loader found it, the process's map has the path."""
    if "/" in name:
        return name
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        mapped = line.split(maxsplit=5)[-1]
        if mapped.rpartition("/")[2].startswith(name):
            return mapped
    return name


def _plugin_folders() -> list[str]:
    """Returns the folders of the packages that bring plugins: the value of an entry point names the package. None of them is imported."""
    folders = set()
    for entry in importlib.metadata.entry_points(group=PLUGINS):
        package, *inner = entry.module.split(".")
        spec = importlib.machinery.PathFinder.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            folders.add(os.path.join(place, *inner))
    return sorted(folder for folder in folders if os.path.isdir(folder) and ":" not in folder)


def _name_plugin_folders() -> None:
    """Appends the folders to THALWEG_PLUGIN_PATH, so that this process's runtimes and its children find the plugins."""
    before = os.environ.get("THALWEG_PLUGIN_PATH", "")
    folders = [folder for folder in _plugin_folders() if folder not in before.split(":")]
    if folders and not before.startswith("only:"):
        os.environ["THALWEG_PLUGIN_PATH"] = ":".join(filter(None, [before, *folders]))


_name_plugin_folders()
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
