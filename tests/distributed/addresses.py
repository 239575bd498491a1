"""Makes addresses for the tasks of tests, for the transport of a plugin: the socket example, gRPC or UCX."""
import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from free_port import free_port  # noqa: E402

_count = itertools.count(1)


def scheme_of(transport):
    return {"libgrpc.so": "grpc", "libucx.so": "ucx"}.get(os.path.basename(transport), "unix")


def new_address(transport, name="t"):
    """Returns an address that no other test uses."""
    if scheme_of(transport) == "grpc":
        return f"grpc:127.0.0.1:{free_port()}"
    return f"{scheme_of(transport)}:{name}-{os.getpid()}-{next(_count)}"
