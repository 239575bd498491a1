"""Ports of the loopback interface for tests; free_port.h in this folder uses the same names."""
import itertools
import os
import socket

_FIRST, _COUNT = 12000, 20000
_next = itertools.count(os.getpid() * 37)
_held = []  # sockets with these names: no other process gets the ports while this process lives


def _hold(port):
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0thalweg-test-port-{port}")
    except OSError:
        name.close()
        return False
    _held.append(name)
    return True


def free_port():
    """Returns a port of the loopback interface that no other test uses."""
    for _ in range(_COUNT):
        port = _FIRST + next(_next) % _COUNT
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        if _hold(port):
            return port
    raise RuntimeError("no free port")
