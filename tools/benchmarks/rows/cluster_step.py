"""Row 18: a step that fetches four bytes from each of 1, 4 and 16 parameter servers, processes of this machine, to the worker, which adds
them. It is compared with TensorFlow's distributed runtime (one and four servers), with calls of gRPC alone, and with plain TCP, none of
which has a client, a graph or a worker between it and the servers."""
from bench import Goal
from workers import Failed

NUMBER = 18
TITLE = "distributed empty step"
GOALS = {"TensorFlow": {1: Goal(0.2, floor=0.35), 4: Goal(0.2, floor=0.35)},
         "gRPC": {1: Goal(1.3, floor=1.5), 16: Goal(0.6, floor=1.0)}}
SAMPLES = 400
MISSED = """Row 18 against gRPC alone: a message goes by shared memory and costs one system call or none, where gRPC's costs three; what is
left is that ours runs a graph at both ends, and finds sessions, steps and values by their names. Between machines, where messages go by
gRPC, that is some 1.5x the time of gRPC alone with 16 servers."""


def bare_grpc(bench, name):
    """Returns a worker of its own for each kind of server, or None if gRPC's C++ library is not installed."""
    try:
        return bench.program_worker(f"gRPC {name}", "grpc_worker", 2)
    except Failed:
        return None


def run(bench):
    for servers in (1, 4, 16):
        ours = bench.program_worker(f"cluster of {servers}", "thalweg_worker", 2)
        command = f"{servers} 4 {SAMPLES}"
        anchors = [("gRPC", bare_grpc(bench, f"of {servers}"), f"call {command}"), ("TCP", bench.machine(), f"tcp {command}")]
        if servers <= 4:  # sixteen of TensorFlow's servers do not fit beside the other processes
            anchors.insert(0, ("TensorFlow", bench.peer("TensorFlow", 2), f"cluster {command}"))
        for name, anchor, what in anchors:
            bench.compare(f"{servers} server{'s' * (servers > 1)}", ("Thalweg", ours, f"cluster {command}"), (name, anchor, what),
                          unit="us", goal=GOALS.get(name, {}).get(servers))
        ours.ask("cluster_stop")
