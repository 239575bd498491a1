"""Addresses for the tasks of tests, over the transport of a plugin: the socket example, or gRPC."""
import itertools
import os
import socket

_count = itertools.count(1)


def scheme_of(transport):
    return "grpc" if os.path.basename(transport) == "libgrpc.so" else "unix"


def free_port():
    """A port of the loopback interface that was free a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def new_address(transport, name="t"):
    """One that no other test uses."""
    if scheme_of(transport) == "grpc":
        return f"grpc:127.0.0.1:{free_port()}"
    return f"unix:{name}-{os.getpid()}-{next(_count)}"
