"""Runtimes: plugins, devices, threads and variables. Most programs use the process's default one.

Threads: any."""
import ctypes
import dataclasses
import json
import os
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional, Union

from . import _low
from ._handle import Handle, c_text
from .errors import UnimplementedError, check, made
from .tensor import bytes_of


@dataclasses.dataclass(frozen=True)
class Device:
    """A device on which operations run. memory: bytes, 0 if unknown.   plugin: the id of its plugin.   statistics: as reported when the
    list was made, see tw_devices_statistics_json (device.h).   capabilities: such as "streams" and "pinned".   pool_used, pool_peak,
    pool_limit: bytes that the runtime had in use on the device when the list was made, the most so far, and the limit (0: none), see
    tw_devices_memory_use (device.h). For the CPU these count all tensors of the process in host memory."""
    name: str
    kind: str
    uid: str
    description: str
    plugin: str
    memory: int
    statistics: dict[str, int] = dataclasses.field(default_factory=dict, compare=False)
    capabilities: tuple[str, ...] = ()
    pool_used: int = dataclasses.field(default=0, compare=False)
    pool_peak: int = dataclasses.field(default=0, compare=False)
    pool_limit: int = dataclasses.field(default=0, compare=False)


@dataclasses.dataclass(frozen=True)
class Plugin:
    """The state of a plugin that was found. state: "loaded", "known" (loaded at its first use), "failed", "disabled", "shadowed",
    "quarantined" or "not allowed".   reason, fix: the reason for which it is not loaded, and the remedy."""
    id: str
    version: str
    path: str
    state: str
    reason: str
    fix: str
    ops: tuple[str, ...]
    device_kinds: tuple[str, ...]
    kernels: int


class Runtime(Handle):
    """A runtime with its own plugins, devices, threads and state. options: Runtime.options() lists them, as in Runtime(threads=2).
    Raises InvalidArgumentError for an unknown option or an invalid value."""
    __slots__ = ("_handle", "_ops", "_mutex", "__weakref__")

    def __init__(self, **options: Any):
        self._handle = 0
        self._start(made(_low.tw_runtime_create, *option_texts(options)))

    @classmethod
    def default(cls) -> "Runtime":
        """Returns the process's default runtime."""
        self = cls.__new__(cls)
        self._start(made(_low.tw_runtime_default))
        return self

    def _start(self, handle: int) -> None:
        self._handle, self._mutex = handle, threading.Lock()
        self._ops: Optional[dict[str, dict[str, Any]]] = None

    def __del__(self, release: Any = _low.tw_runtime_release) -> None:
        release(getattr(self, "_handle", None))

    def ops(self, fresh: bool = False) -> dict[str, dict[str, Any]]:
        """Returns all ops by name, each as the object of tw_ops_json (op.h). The list is made once, and again if fresh is true."""
        with self._mutex:
            if self._ops is None or fresh:
                self._ops = _list_ops(self._handle)
            return self._ops

    def op(self, name: str) -> Optional[dict[str, Any]]:
        """Returns one op, including ops of plugins loaded later; None if there is none."""
        return self.ops().get(name) or self.ops(fresh=True).get(name)

    def load_plugin(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Loads one plugin file; its ops and devices are available at once.
        Raises NotFoundError, FailedPreconditionError (another ABI), AlreadyExistsError, and errors of its init."""
        check(_low.tw_plugin_load(self._handle, c_text(os.fspath(path))))
        self.ops(fresh=True)

    def unload_plugin(self, id: str) -> None:
        """Shuts a plugin down and closes its file.
        Raises NotFoundError, and FailedPreconditionError while a graph, session or tensor uses it."""
        check(_low.tw_plugin_unload(self._handle, c_text(id)))
        self.ops(fresh=True)

    def reset(self, container: str = "") -> int:
        """Empties a container of state in this process, as Session.reset does, and returns the number of objects it held.   container: "":
        `localhost`, which graphs share by shared_name. Raises InvalidArgumentError for a name that begins with "<"."""
        count = ctypes.c_uint64()
        check(_low.tw_runtime_reset(self._handle, c_text(container), count))
        return count.value

    def devices(self) -> list[Device]:
        """Returns the devices of every plugin that can be loaded."""
        handle = made(_low.tw_devices_create, self._handle)
        try:
            return [_device(handle, i) for i in range(_low.tw_devices_count(handle))]
        finally:
            _low.tw_devices_destroy(handle)

    def give_memory_back(self) -> None:
        """Returns unused memory, which the runtime caches, to its devices and the system. Memory in use stays."""
        check(_low.tw_runtime_give_back(self._handle))

    def plugins(self) -> list[Plugin]:
        """Returns every plugin that it found, including those that it did not load, with the reason."""
        handle = made(_low.tw_plugins_create, self._handle)
        try:
            return [_plugin(handle, i) for i in range(_low.tw_plugins_count(handle))]
        finally:
            _low.tw_plugins_destroy(handle)

    @staticmethod
    def options() -> dict[str, "Option"]:
        """Every option by name."""
        return list_options(_low.tw_runtime_option)


def _device(handle: int, i: int) -> Device:
    name, kind, uid, description, plugin, capabilities = (_text(read(handle, i)) for read in (
        _low.tw_devices_name, _low.tw_devices_kind, _low.tw_devices_uid, _low.tw_devices_description, _low.tw_devices_plugin,
        _low.tw_devices_capabilities))
    return Device(name, kind, uid, description, plugin, _low.tw_devices_memory(handle, i), _statistics(handle, i),
                  tuple(capabilities.split(", ")) if capabilities else (), *_pool(handle, i))


def _pool(handle: int, i: int) -> list[int]:
    bytes_used = [ctypes.c_uint64() for _ in range(3)]
    check(_low.tw_devices_memory_use(handle, i, *map(ctypes.byref, bytes_used)))
    return [n.value for n in bytes_used]


def _statistics(handle: int, i: int) -> dict[str, int]:
    try:
        return dict(json.loads(bytes_of(made(_low.tw_devices_statistics_json, handle, i))))
    except UnimplementedError:  # the device has no statistics
        return {}


_STATES = {_low.TW_PLUGIN_LOADED: "loaded", _low.TW_PLUGIN_FAILED: "failed", _low.TW_PLUGIN_DISABLED: "disabled",
           _low.TW_PLUGIN_SHADOWED: "shadowed", _low.TW_PLUGIN_KNOWN: "known", _low.TW_PLUGIN_QUARANTINED: "quarantined",
           _low.TW_PLUGIN_NOT_ALLOWED: "not allowed"}


def _plugin(handle: int, i: int) -> Plugin:
    id_, version, path, reason, fix = (_text(read(handle, i)) for read in (
        _low.tw_plugins_id, _low.tw_plugins_version, _low.tw_plugins_path, _low.tw_plugins_reason, _low.tw_plugins_fix))
    return Plugin(id_, version, path, _STATES[_low.tw_plugins_state(handle, i)], reason, fix,
                  tuple(_text(_low.tw_plugins_op(handle, i, k)) for k in range(_low.tw_plugins_op_count(handle, i))),
                  tuple(_text(_low.tw_plugins_device_kind(handle, i, k)) for k in range(_low.tw_plugins_device_kind_count(handle, i))),
                  _low.tw_plugins_kernel_count(handle, i))


def _list_ops(runtime: int) -> dict[str, dict[str, Any]]:
    handle, found = made(_low.tw_ops_create, runtime), {}
    try:
        for i in range(_low.tw_ops_count(handle)):
            op = json.loads(bytes_of(made(_low.tw_ops_json, handle, i)))
            found[op["name"]] = op
        return found
    finally:
        _low.tw_ops_destroy(handle)


def _text(text: Optional[bytes]) -> str:
    return "" if text is None else text.decode(errors="replace")


def option_texts(options: Mapping[str, Any]) -> tuple[Any, int]:
    """Converts keyword arguments to the "key=value" texts of the C API; a list becomes several texts of one key."""
    texts = []
    for key, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            texts.append(c_text(f"{key}={str(one).lower() if isinstance(one, bool) else one}"))
    return (ctypes.c_char_p * len(texts))(*texts), len(texts)


_OPTION_KINDS = {_low.TW_OPTION_TEXT: "text", _low.TW_OPTION_BOOL: "bool", _low.TW_OPTION_INT: "int", _low.TW_OPTION_BYTES: "bytes",
                 _low.TW_OPTION_CHOICE: "choice", _low.TW_OPTION_LIST: "list"}


class Option(NamedTuple):
    """An option of a runtime or a session. min, max: for int and bytes.   repeats: True if it may be given several times."""
    name: str
    kind: str  # text, bool, int, bytes (512M), choice, list
    default: str
    doc: str
    choices: tuple[str, ...]
    min: int
    max: int
    repeats: bool


def list_options(option: Any) -> dict[str, Option]:
    found: dict[str, Option] = {}
    while at := option(len(found)):
        o = at.contents
        found[o.name.decode()] = Option(o.name.decode(), _OPTION_KINDS[o.kind], _text(o.default_value), _text(o.doc),
                                        tuple(_text(o.choices[k]) for k in range(o.n_choices)), o.min, o.max, bool(o.repeats))
    return found


def version() -> str:
    """Returns the version of the loaded library, such as "0.1.0"."""
    return _low.tw_version_string().decode()


_default_mutex = threading.Lock()
_default: Optional[Runtime] = None


def default_runtime() -> Runtime:
    """Returns the process's default runtime, always the same object, so that its ops are listed once."""
    global _default
    with _default_mutex:
        if _default is None:
            _default = Runtime.default()
        return _default


def devices(runtime: Optional[Runtime] = None) -> list[Device]:
    """Returns the devices of a runtime; None: the default one."""
    return (runtime or default_runtime()).devices()


def plugins(runtime: Optional[Runtime] = None) -> list[Plugin]:
    """Returns every plugin that a runtime found; None: the default one."""
    return (runtime or default_runtime()).plugins()


def load_plugin(path: Union[str, "os.PathLike[str]"], runtime: Optional[Runtime] = None) -> None:
    """Calls Runtime.load_plugin of a runtime; None: the default one."""
    (runtime or default_runtime()).load_plugin(path)
