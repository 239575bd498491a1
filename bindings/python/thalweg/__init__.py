"""Thalweg, a dataflow machine-learning runtime, from Python: build a graph, differentiate it, train, save, serve.

    import thalweg as tw
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None], name="x")
        y = x * x + 1
    with tw.Session(g) as s:
        print(s.run(y, {x: [3, 4]}))        # [10. 17.]

Modules, in reading order: graph, output (values and their operators), ops (every op as a function), variable, gradients, train, session,
tensor (NumPy and DLPack), saver, runtime, errors."""
from . import ops, train
from .dtypes import *
from .dtypes import __all__ as _dtypes
from .errors import (AbortedError, AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError, Error,
                     FailedPreconditionError, InternalError, InvalidArgumentError, Line, NotFoundError, OutOfRangeError,
                     PermissionDeniedError, ResourceExhaustedError, UnauthenticatedError, UnavailableError, UnimplementedError,
                     UnknownError)
from .gradients import SparseGradient, gradients
from .graph import Graph, constant, current_graph, group, initializer, placeholder
from .output import Operation, Output
from .runtime import Device, Plugin, Runtime, devices, load_plugin, plugins, version
from .saver import Checkpoint, Saver, write_checkpoint
from .scopes import control_dependencies, device, name_scope
from .session import Callable, CancelToken, Session
from .tensor import Tensor, from_dlpack
from .variable import Variable

__version__ = version()
__all__ = [*_dtypes, "AbortedError", "AlreadyExistsError", "Callable", "CancelToken", "CancelledError", "Checkpoint", "DataLossError",
           "DeadlineExceededError", "Device", "Error", "FailedPreconditionError", "Graph", "InternalError", "InvalidArgumentError", "Line",
           "NotFoundError", "Operation", "OutOfRangeError", "Output", "PermissionDeniedError", "Plugin", "ResourceExhaustedError",
           "Runtime", "Saver", "Session", "SparseGradient", "Tensor", "UnauthenticatedError", "UnavailableError", "UnimplementedError",
           "UnknownError", "Variable", "constant", "control_dependencies", "current_graph", "device", "devices", "from_dlpack", "gradients",
           "graph", "group", "initializer", "load_plugin", "name_scope", "ops", "placeholder", "plugins", "train", "version",
           "write_checkpoint"]
