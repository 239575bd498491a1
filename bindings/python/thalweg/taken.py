"""Elements that threads take from readers ahead of the program, within limits of their number and bytes."""
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Optional, Union

from .tensor import Tensor

Element = list[Tensor]


class Stream:
    """The elements of one reader or of one split, in order. The lock of its Taken guards it."""

    def __init__(self) -> None:
        self.items: deque[Union[Element, Exception]] = deque()
        self.held = 0  # elements here, and the one that is being taken
        self.over = False
        self.failure: Optional[BaseException] = None  # for each further call
        self.lost: Optional[tuple[float, BaseException]] = None  # since when its reader is lost, and why; None: it is not


class Taken:
    """The streams of one epoch. most: elements of each stream.   most_bytes: of all streams together; a stream may exceed them by one
    element, so that each goes on.   Threads: any."""

    def __init__(self, most: int, most_bytes: int):
        self._most, self._most_bytes, self._bytes, self._first = most, most_bytes, 0, 0
        self._changed = threading.Condition()
        self.stopped = False

    # ---- For the threads that take ----

    def reserve(self, stream: Stream) -> bool:
        """Waits for room for one more element. Returns False once the epoch is stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped or stream.held == 0 or (stream.held < self._most and self._bytes < self._most_bytes))
            stream.held += 1
            return not self.stopped

    def add(self, stream: Stream, item: Union[Element, Exception]) -> None:
        """Adds an element, or an error that the program gets in its place, for a reservation."""
        with self._changed:
            stream.items.append(item)
            self._bytes += _bytes(item)
            stream.lost = None
            self._changed.notify_all()

    def lose(self, stream: Stream, why: BaseException, told: Optional[Exception]) -> None:
        """Notes that the stream's reader is lost, and ends the reservation. told: an error for the program; None: it is not told."""
        with self._changed:
            stream.lost = stream.lost or (time.monotonic(), why)
            if told is None:
                stream.held -= 1
            else:
                stream.items.append(told)
            self._changed.notify_all()

    def end(self, stream: Stream, failure: Optional[BaseException] = None) -> None:
        """Ends the stream. failure: raised by each further call."""
        with self._changed:
            stream.over, stream.failure, stream.lost = True, failure, None
            self._changed.notify_all()

    # ---- For the program ----

    def next_of(self, stream: Stream) -> Optional[Element]:
        """Waits for the next element of a stream; None at its end. Raises its errors."""
        with self._changed:
            self._changed.wait_for(lambda: bool(stream.items) or stream.over)
            return self._pop(stream)

    def next_of_any(self, streams: Sequence[Stream], wait: float) -> Optional[Element]:
        """Waits for an element of any stream; None when all are over, or are over or lost. Raises errors of streams, and the failure of a
        lost one if all have been lost for `wait` seconds. If a stream has failed, each call raises that."""
        with self._changed:
            while True:
                for stream in streams:
                    if stream.failure is not None:
                        raise stream.failure
                for k in range(len(streams)):
                    stream = streams[(self._first + k) % len(streams)]
                    if stream.items:
                        self._first += k + 1
                        return self._pop(stream)
                lost = [s.lost for s in streams if s.lost and not s.over]
                if any(s.over for s in streams) and len(lost) + sum(s.over for s in streams) == len(streams):
                    return None
                if len(lost) < len(streams):
                    self._changed.wait()
                    continue
                since, why = max(lost, key=lambda x: x[0])
                left = since + wait - time.monotonic()
                if left <= 0:
                    raise why
                self._changed.wait(left)

    def stop(self) -> None:
        """Ends all waits of the threads that take."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Waits, unless the epoch is stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped, seconds)

    def _pop(self, stream: Stream) -> Optional[Element]:
        if not stream.items:
            if stream.failure is not None:
                raise stream.failure
            return None
        item = stream.items.popleft()
        stream.held -= 1
        self._bytes -= _bytes(item)
        self._changed.notify_all()
        if isinstance(item, Exception):
            raise item
        return item


def _bytes(item: Union[Element, Exception]) -> int:
    return 0 if isinstance(item, Exception) else sum(t.nbytes for t in item)
