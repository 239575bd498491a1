"""Saving a model in one file: signatures, the operations that they need, and weights.

    thalweg.save(trainer, "digits.tw")
    thalweg.save(session, "digits.tw", {"serving_default": ({"image": x}, {"scores": z})})

c_api/include/thalweg/save_model.h describes the file, which TensorFlow reads, too."""
import ctypes
import os
from collections.abc import Mapping
from typing import Any, Optional, Union

from . import _low
from ._handle import c_text
from .cancel import waited
from .output import Formula
from .session import Session
from .trainer import Trainer

__all__ = ["save"]

Path = Union[str, "os.PathLike[str]"]
Values = Mapping[str, Formula]


def __dir__() -> list[str]:
    return __all__


def save(model: Union[Trainer, Session], path: Path, signatures: Optional[Mapping[str, tuple[Values, Values]]] = None) -> None:
    """Writes a model to one file. model: a session; or a trainer, whose moving averages, if it has some, are what is saved.
    signatures: by name, the fed values and the fetched values, each by name; None: of a trainer, its inputs and its outputs as
    "serving_default". Operations that no signature needs, such as those of the training, are left out. An older file stays until the new one
    is complete.
    Raises InvalidArgumentError naming a placeholder that an output needs and no signature feeds, FailedPreconditionError for variables
    without contents, errors of the file system."""
    session = model.session if isinstance(model, Trainer) else model
    if not isinstance(session, Session):
        raise TypeError(f"{model!r} is neither a session nor a trainer")
    if signatures is None:
        if not isinstance(model, Trainer):
            raise ValueError("a session has no signatures of its own; say which values are fed and fetched: {'serving_default': ({'x': x}, {'y': y})}")
        signatures = {"serving_default": model.signature()}
    made, kept = [], []
    for name, (inputs, outputs) in signatures.items():
        lists = [_values(inputs), _values(outputs)]
        kept.append(lists)
        made.append(_low.tw_saved_signature(
            size=ctypes.sizeof(_low.tw_saved_signature), name=c_text(name), input_names=lists[0][0], inputs=lists[0][1], n_inputs=len(inputs),
            output_names=lists[1][0], outputs=lists[1][1], n_outputs=len(outputs)))
    swap = model.swap if isinstance(model, Trainer) else None
    if swap is not None:
        session.run(swap)
    try:
        waited(_low.tw_model_save, session.graph._handle, session._handle, (_low.tw_saved_signature * len(made))(*made), len(made),
               os.fsencode(path))
    finally:
        if swap is not None:
            session.run(swap)


def _values(values: Values) -> tuple[Any, Any]:
    names = (ctypes.c_char_p * len(values))(*(c_text(name) for name in values))
    for name, value in values.items():
        if not isinstance(value, Formula):
            raise TypeError(f"'{name}' is {value!r}; it must be a value of the graph")
    return names, (ctypes.c_uint64 * len(values))(*(v._value().number for v in values.values()))
