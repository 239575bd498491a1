"""What is common to objects that stand for one of the library's, and to texts on their way there."""
from typing import Any


class Handle:
    """Holds a reference that goes back once, so it is neither copied nor pickled."""
    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: it stands for an object of the library")


def c_text(text: Any) -> bytes:
    """Text for the library, where a zero byte would end it."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no text")
    if "\0" in text:
        raise ValueError(f"{text!r} has a zero byte in it")
    return text.encode()
