"""Handle, the base of objects that own a handle of the library, and conversion of texts for the library."""
from typing import Any


class Handle:
    """Owns a reference and releases it once, so it cannot be copied or pickled."""
    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: it stands for an object of the library")


def c_text(text: Any) -> bytes:
    """Converts text for the library, where a zero byte would end it."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no text")
    if "\0" in text:
        raise ValueError(f"{text!r} has a zero byte in it")
    return text.encode()
