"""Models from files: SavedModel, ONNX and every other format that a plugin has an importer for.

    m = thalweg.load("model.onnx")
    scores = m(image=x)["scores"]

Threads: any number may run one model at once; a run releases Python's global lock."""
import ctypes
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

from . import _low, tensor
from ._handle import Handle, c_text
from .cancel import CancelToken, interruptible
from .dtypes import DType, from_number
from .errors import InvalidArgumentError, check, made
from .graph import Graph
from .output import Output, shape_from
from .runtime import Runtime, default_runtime, option_texts
from .session import Session, _options
from .tensor import Tensor
from .value import Value


class Port(NamedTuple):
    """An input or output of a signature. shape: None: any rank; a size is a number, a name that stands for equal sizes, or None.
    optional: an input that a call may leave out."""
    name: str
    dtype: DType
    shape: Optional[tuple[Union[int, str, None], ...]]
    optional: bool


class Signature(NamedTuple):
    """A way to call a model. doc: "": the file says nothing of it."""
    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    doc: str


class Model(Handle):
    """A model from a file, with a graph and a session of its own; see load. Call it with inputs by name, or in the order of the signature."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], runtime: Optional[Runtime], importer: Optional[str],
                 signatures: Optional[Sequence[str]], session: Mapping[str, Any], options: Mapping[str, Any]):
        self._handle = 0
        self.path = os.fspath(path)
        self.runtime = runtime or default_runtime()
        given, n_given = option_texts(options)
        texts, n_texts = option_texts(session)
        names = [c_text(name) for name in signatures or ()]
        what = _low.tw_model_options(
            size=ctypes.sizeof(_low.tw_model_options), importer=None if importer is None else c_text(importer), options=given, n_options=n_given,
            session_options=texts, n_session_options=n_texts, signatures=(ctypes.c_char_p * len(names))(*names), n_signatures=len(names))
        self._handle = made(_low.tw_model_load, self.runtime._handle, c_text(self.path), what)
        count = range(_low.tw_model_signature_count(self._handle))
        all_signatures = [_signature(_low.tw_model_signature_at(self._handle, i).contents) for i in count]
        self.signatures: dict[str, Signature] = {s.name: s for s in all_signatures}
        self._graph: Optional[Graph] = None
        self._session: Optional[Session] = None
        self._mutex = threading.Lock()

    def __del__(self, destroy: Any = _low.tw_model_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def __repr__(self) -> str:
        return f"<Model '{self.path}' ({self.importer}): {', '.join(self.signatures)}>"

    @property
    def importer(self) -> str:
        """The importer that loaded the file: "savedmodel", "onnx", ..."""
        name: bytes = _low.tw_model_importer(self._handle)
        return name.decode()

    @property
    def properties(self) -> dict[str, str]:
        """What the file says of itself, such as its producer."""
        found = {}
        for i in range(_low.tw_model_property_count(self._handle)):
            key, text = ctypes.c_char_p(), ctypes.c_char_p()
            check(_low.tw_model_property(self._handle, i, key, text))
            found[(key.value or b"").decode()] = (text.value or b"").decode()
        return found

    @property
    def signature(self) -> Signature:
        """The signature of calls that name none."""
        return self._find(None)

    def values(self, signature: Optional[str] = None) -> tuple[dict[str, Output], dict[str, Output]]:
        """Returns the inputs and the outputs of a signature as values of the graph, by name, as thalweg.save takes them."""
        graph, name = self.graph, self._find(signature).name
        found = ctypes.POINTER(_low.tw_model_signature)()
        check(_low.tw_model_find(self._handle, c_text(name), found))
        s = found.contents
        return tuple({values[i].contents.name.decode(): Output(graph, values[i].contents.output) for i in range(count)}  # type: ignore[return-value]
                     for values, count in ((s.inputs, s.n_inputs), (s.outputs, s.n_outputs)))

    @property
    def graph(self) -> Graph:
        """The model's graph, to which operations may be added."""
        with self._mutex:
            if self._graph is None:
                self._graph = _ModelGraph(self)
            return self._graph

    @property
    def session(self) -> Session:
        """The model's session, which has its variables."""
        graph = self.graph
        with self._mutex:
            if self._session is None:
                self._session = _ModelSession(self, graph)
            return self._session

    def __call__(self, *values: Any, signature: Optional[str] = None, timeout: Optional[float] = None,
                 cancel: Optional[CancelToken] = None, as_tensors: bool = False, **inputs: Any) -> dict[str, Any]:
        """Runs a signature and returns its outputs by name, as arrays, or with as_tensors as Tensors. values: the first inputs, in the
        order of the signature.   inputs: the others by name; for names that are no words of Python use run.   signature: None: the
        default.   timeout: seconds. Raises InvalidArgumentError for inputs that are missing or do not fit, and errors of operations."""
        s = self._find(signature)
        if len(values) > len(s.inputs):
            raise InvalidArgumentError(f"signature '{s.name}' has {len(s.inputs)} inputs, and {len(values)} were given")
        return self.run({**{port.name: value for port, value in zip(s.inputs, values)}, **inputs}, signature=signature, timeout=timeout,
                        cancel=cancel, as_tensors=as_tensors)

    def run(self, inputs: Mapping[str, Any], *, signature: Optional[str] = None, timeout: Optional[float] = None,
            cancel: Optional[CancelToken] = None, as_tensors: bool = False) -> dict[str, Any]:
        """The same with the inputs in a dict."""
        s = self._find(signature)
        unknown = [name for name in inputs if name not in {port.name for port in s.inputs}]
        if unknown:
            raise InvalidArgumentError(f"signature '{s.name}' has no input '{unknown[0]}'; it has "
                                       f"{', '.join(repr(port.name) for port in s.inputs) or 'none'}")
        given = [_given(port, inputs.get(port.name)) for port in s.inputs]
        handles = (ctypes.c_void_p * len(given))(*(t._handle if t is not None else None for t in given))
        results = (ctypes.c_void_p * len(s.outputs))()

        def run(token: Optional[int]) -> Optional[int]:
            return _low.tw_model_run(self._handle, c_text(s.name), handles, _options(timeout, token, None), results)

        try:
            check(interruptible(run, cancel))
        except BaseException:  # from a signal handler; the run may have succeeded
            for result in results:
                _low.tw_tensor_release(result)
            raise
        tensors = [Tensor._adopt(handle or 0) for handle in results]
        return {port.name: t if as_tensors or t.device else tensor.to_value(t) for port, t in zip(s.outputs, tensors)}

    def _find(self, name: Optional[str]) -> Signature:
        found = ctypes.POINTER(_low.tw_model_signature)()
        check(_low.tw_model_find(self._handle, None if name is None else c_text(name), found))
        return self.signatures[found.contents.name.decode()]


def load(path: Union[str, "os.PathLike[str]"], *, runtime: Optional[Runtime] = None, importer: Optional[str] = None,
         signatures: Optional[Sequence[str]] = None, session: Optional[Mapping[str, Any]] = None, **options: Any) -> Model:
    """Loads a model of any format that a plugin knows; the contents of the file or folder say which. runtime: None: the default one.
    importer: None: the surest one.   signatures: only these, and what they need, are loaded; None: all.   session: options of its session,
    as in Session(...).   options: of the importer, as in load("m", tags="serve"); importers() lists them.
    Raises NotFoundError for a missing file, InvalidArgumentError for contents that no importer knows and damaged ones, and one error that
    lists all ops and files that are missing."""
    return Model(path, runtime, importer, signatures, session or {}, options)


def importers(runtime: Optional[Runtime] = None) -> dict[str, str]:
    """Returns the formats that can be loaded, by importer: what they are, the usual names of files, and options."""
    text = tensor.bytes_of(made(_low.tw_model_importers, (runtime or default_runtime())._handle)).decode()
    rows = [line.split("\t") for line in text.splitlines()]
    return {row[0]: f"{row[1]} ({row[2]})" + (f"; options: {row[3]}" if row[3] else "") for row in rows}


def _signature(s: Any) -> Signature:
    return Signature(s.name.decode(), tuple(_port(s.inputs[i].contents) for i in range(s.n_inputs)),
                     tuple(_port(s.outputs[i].contents) for i in range(s.n_outputs)), s.doc.decode())


def _port(v: Any) -> Port:
    shape = shape_from(v.shape.contents)
    sizes: Optional[tuple[Union[int, str, None], ...]] = shape
    if shape is not None and v.symbols:
        sizes = tuple((v.symbols[i] or b"").decode() or None if size is None else size for i, size in enumerate(shape))
    return Port(v.name.decode(), from_number(v.dtype), sizes, bool(v.is_optional))


def _given(port: Port, value: Any) -> Optional[Tensor]:
    if value is None:
        return None
    if isinstance(value, Value):
        value = value.tensor
    if isinstance(value, Tensor):
        return value
    try:
        return Tensor._adopt(tensor.copied(tensor.as_array(value, port.dtype)[0]))
    except (TypeError, ValueError) as e:
        raise TypeError(f"input '{port.name}': {e}") from None


class _ModelGraph(Graph):
    """The graph of a model, which owns it."""

    def __init__(self, model: Model):
        self._model = model
        super().__init__(model.runtime)

    def _new_handle(self) -> int:
        handle: int = _low.tw_model_graph(self._model._handle)
        return handle

    def __del__(self, destroy: Any = None) -> None:
        pass


class _ModelSession(Session):
    """The session of a model, which owns it."""

    def __init__(self, model: Model, graph: Graph):
        self.graph, self._model = graph, model
        self._handle = _low.tw_model_session(model._handle)
        self._prepared = {}
        self._reads = {}
        self._mutex = threading.Lock()

    def __del__(self, destroy: Any = None) -> None:
        self._prepared.clear()
