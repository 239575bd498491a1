"""Tests sessions over gRPC to host names that no server resolves: resolver_test.py THALWEG TRANSPORT

Each of gRPC's resolvers waits for name servers for up to two minutes. The creation of a session waits for target_timeout_ms, and then for
one second in which a pending connection may succeed (plugins/grpc/line.cc). The end of a runtime or of a program waits for no resolver.
The test runs in a mount namespace with its own resolv.conf, whose name server receives all queries and answers none. Without the right to
make a namespace it is skipped."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

THALWEG, TRANSPORT = sys.argv[1:3]
SERVER, PROMISED, PATIENCE = "127.0.0.78", 2, 5  # address; promised seconds; extra seconds for a busy machine

CLIENT = """
import sys, time
import thalweg as tw
target, credentials = sys.argv[1:3]
tw.load_plugin({transport!r})
with tw.Graph() as graph:
    y = tw.constant(1.0)
began = time.monotonic()
try:
    tw.Session(graph, target=target, credentials=credentials, target_timeout_ms=1000)
    raise AssertionError("there is a session")
except tw.UnavailableError as e:
    said = str(e)
except tw.DeadlineExceededError as e:
    said = str(e)
assert target in said, said
print(f"refused after {{time.monotonic() - began:.2f}} s: {{said}}", flush=True)
"""


def inside():
    """Runs the test inside the namespace."""
    folder = pathlib.Path(sys.argv[3])
    resolv = folder / "resolv.conf"
    resolv.write_text(f"nameserver {SERVER}\noptions timeout:20 attempts:2\n")
    subprocess.run(["mount", "--bind", str(resolv), "/etc/resolv.conf"], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((SERVER, 53))
        for resolver in ("ares", "native"):
            server.setblocking(False)
            began = time.monotonic()
            client = subprocess.run([sys.executable, "-c", CLIENT.format(transport=TRANSPORT), "grpc:nobody.thalweg.test:4000",
                                     str(folder / "keys" / "client-ann")], env={**os.environ, "GRPC_DNS_RESOLVER": resolver},
                                    capture_output=True, text=True, timeout=300)
            whole = time.monotonic() - began
            asked = b""
            while b"nobody" not in asked:
                asked = server.recv(4096)  # BlockingIOError: no resolver asked, so nothing was tested
            print(f"{resolver}: {client.stdout}{client.stderr}the program took {whole:.2f} s", flush=True)
            assert client.returncode == 0
            refused = float(client.stdout.split("refused after ")[1].split()[0])
            assert refused < PROMISED + PATIENCE, "who makes a session waited for the resolver"
            assert whole - refused < PATIENCE, "the end of the program waited for the resolver"
            while asked:  # reads the repeated queries
                try:
                    asked = server.recv(4096)
                except BlockingIOError:
                    break


def main():
    with tempfile.TemporaryDirectory() as folder:
        cluster = pathlib.Path(folder) / "cluster.json"
        cluster.write_text(json.dumps({"ps": ["grpc:127.0.0.1:4000"]}))
        subprocess.run([THALWEG, "cluster", "init", "--cluster", str(cluster), "--out", folder + "/keys", "--client", "ann"], check=True,
                       stdout=subprocess.DEVNULL)
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
        probe = ["sh", "-c", f"mount --bind {cluster} /etc/resolv.conf", "sh"]
        free = subprocess.run([*unshare, *probe], capture_output=True).returncode == 0
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind((SERVER, 53))
        except OSError:
            free = False
        if not free:
            print("skipped: no mount namespace may be made here, or nobody may listen at port 53")
            sys.exit(77)
        sys.exit(subprocess.run([*unshare, sys.executable, __file__, THALWEG, TRANSPORT, folder], timeout=600).returncode)


if len(sys.argv) > 3:
    inside()
else:
    main()
