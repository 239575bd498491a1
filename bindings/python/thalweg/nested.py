"""Nested tuples, lists and dicts as a list of leaves and a form, from which they are made again."""

from typing import Any


def flatten(x: Any, leaves: list[Any]) -> Any:
    """Adds the leaves of nested tuples, lists and dicts, and returns their form: None for a leaf, else (type, names of a dict, forms)."""
    if type(x) is dict:
        return dict, tuple(x), tuple(flatten(v, leaves) for v in x.values())
    if isinstance(x, (list, tuple)) and (type(x) in (list, tuple) or hasattr(x, "_fields")):
        return type(x), None, tuple(flatten(v, leaves) for v in x)
    leaves.append(x)
    return None


def rebuild(form: Any, leaves: Any) -> Any:
    """Returns the nested value of a form, with the next of the leaves, an iterator."""
    if form is None:
        return next(leaves)
    kind, names, forms = form
    parts = [rebuild(f, leaves) for f in forms]
    if kind is dict:
        return dict(zip(names, parts))
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
