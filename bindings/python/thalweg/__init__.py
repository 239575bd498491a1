"""Thalweg, a dataflow machine-learning runtime, from Python: build a graph, differentiate it, train, save, serve.

    import thalweg as tw
    with tw.Graph() as g:
        x = tw.placeholder("float32", [None], name="x")
        y = x * x + 1
    with tw.Session(g) as s:
        print(s.run(y, {x: [3, 4]}))        # [10. 17.]

Modules, in reading order: graph, scopes (names, devices, order), output (values and their operators), dtypes, ops (every op as a
function), flow (conditions and loops), functions (traced ones), control and syntax (how they are rewritten), traced (how they run
without a graph), custom (gradients of a program's own), recompute (gradients that keep less), host_functions (functions of Python as
operations), vmap and batching, slices (map, fold, scan), data (datasets), elements, iterating, generated, stored_sources, record_files, service,
readers, taken, splitting and shares (datasets that tasks of a cluster read), variable, random (seeds), queues, waiting, gradients, eager and value (without a graph), debug, tape, train, schedules, averages, losses, metrics, iterators,
trainer (the loop), history, nn (layers), module, layers, sequences, recurrent, generation (texts from a
model), lbfgs, loss_scale, session, model (from files), eight_bits (nets in numbers of 8 bits), saved (models
in one file), text (tokenizers), stats, record (of one step, and its replay), summaries (for TensorBoard), future (steps without waiting), cancel, tensor (NumPy and DLPack),
saver, weights (files of others), server, sharded, atomic (variables of several tasks, assigned together), replicas, recovery (clusters), ray and ray_programs (imported by name: a cluster of Ray),
runtime, log, errors."""
import typing as _typing

from . import averages, data, generation, log, losses, metrics, nn, ops, random, recurrent, schedules, text, train, weights
from .atomic import AtomicVariables, AtomicWriter
from .cancel import CancelToken
from .control import TraceWarning
from .custom import custom_gradient
from .debug import debug
from .dtypes import *
from .dtypes import __all__ as _dtypes
from .eager import Eager, EagerReport
from .eight_bits import Quantized, QuantizedLayer, quantize
from .errors import (AbortedError, AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError, Error,
                     FailedPreconditionError, InternalError, InvalidArgumentError, Line, NotFoundError, OutOfRangeError,
                     PermissionDeniedError, ResourceExhaustedError, UnauthenticatedError, UnavailableError, UnimplementedError,
                     UnknownError)
from .flow import cond, outline, switch_case, while_loop
from .functions import Function, function
from .future import Future
from .gradients import SparseGradient, gradients
from .graph import Graph, constant, current_graph, group, initializer, placeholder
from .host_functions import py_function
from .iterators import Iterator
from .model import Model, importers, load
from .output import Operation, Output
from .queues import FIFOQueue, PaddingFIFOQueue, PriorityQueue, Queue, RandomShuffleQueue
from .recompute import checkpoint
from .record import Replay, record_step, replay_step
from .recovery import AsyncTraining, SyncTraining
from .replicas import ParameterServers, Spread, SyncReplicas
from .runtime import Device, Plugin, Runtime, devices, load_plugin, plugins, version
from .saved import save
from .saver import Checkpoint, Checkpointer, Restored, Saver, SaveReport, latest_checkpoint, write_checkpoint
from .scopes import container, control_dependencies, device, name_scope, priority
from .server import Server, cluster_reset, cluster_status
from .session import Callable, PartialRun, Session
from .sharded import ShardedTable, sharded_sampled_softmax, sharded_softmax
from .slices import foldl, foldr, map_fn, scan
from .stats import NodeStats, OpStats, StepStats, TotalStats, Trace, WaitStats
from .summaries import SummaryWriter
from .tape import Tape, grad, value_and_grad
from .tensor import Tensor, from_dlpack
from .value import Value
from .variable import Variable, assign_variables, read_variables
from .vmap import VmapWarning, vmap, vmap_ops
from .waiting import Barrier, ConditionalAccumulator, CriticalSection, SparseConditionalAccumulator, StagingArea

__version__ = version()
__all__ = [*_dtypes, "AbortedError", "AlreadyExistsError", "AsyncTraining", "AtomicVariables", "AtomicWriter", "Barrier", "Callable", "CancelToken",
           "CancelledError", "Checkpoint", "Checkpointer", "ConditionalAccumulator", "CriticalSection",
           "DataLossError", "DeadlineExceededError", "Device", "Eager", "EagerReport", "Error", "FIFOQueue",
           "FailedPreconditionError", "Function", "Future", "Graph", "InternalError", "InvalidArgumentError",
           "Iterator", "Line", "Model", "NodeStats", "NotFoundError", "OpStats", "Operation",
           "OutOfRangeError", "Output", "PaddingFIFOQueue", "ParameterServers",
           "PartialRun", "PermissionDeniedError", "Plugin",
           "PriorityQueue", "Quantized", "QuantizedLayer", "Queue", "RandomShuffleQueue", "Replay", "ResourceExhaustedError", "Restored", "Runtime",
           "SaveReport", "Saver", "Server", "Session", "ShardedTable", "SparseConditionalAccumulator",
           "SparseGradient", "Spread", "StagingArea", "StepStats", "SummaryWriter", "SyncReplicas", "SyncTraining", "Tape",
           "Tensor", "TotalStats", "Trace", "TraceWarning", "UnauthenticatedError", "UnavailableError", "UnimplementedError",
           "UnknownError", "Value", "Variable", "VmapWarning", "WaitStats", "assign_variables", "averages", "checkpoint", "cluster_reset",
           "cluster_status", "cond", "constant", "container", "control_dependencies", "current_graph", "custom_gradient", "data",
           "debug", "device", "devices", "foldl", "foldr", "from_dlpack", "function", "generation", "grad", "gradients", "group",
           "importers", "initializer", "latest_checkpoint", "load", "load_plugin", "log", "losses", "map_fn",
           "metrics", "name_scope", "nn", "ops", "outline", "placeholder", "plugins", "priority", "py_function", "quantize", "random",
           "read_variables", "record_step", "recurrent", "replay_step", "save", "scan", "schedules", "sharded_sampled_softmax",
           "sharded_softmax", "switch_case", "text", "train", "value_and_grad", "version", "vmap", "vmap_ops", "weights", "while_loop",
           "write_checkpoint"]


def __dir__() -> list[str]:  # names for completion, without modules that only the package uses
    return [*__all__, "__version__"]


if not _typing.TYPE_CHECKING:  # a type checker would conclude from it that every name exists
    def __getattr__(name):
        from .op_functions import elsewhere
        told = "" if name.startswith("_") else elsewhere(name, __all__)
        raise AttributeError(f"module 'thalweg' has no attribute '{name}'{told}")
