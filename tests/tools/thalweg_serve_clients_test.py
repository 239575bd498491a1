"""Tests of `thalweg serve`: hostile, slow and many clients, clients that leave, and limits."""
import gzip
import http.client
import json
import resource
import socket
import struct
import sys

from thalweg_command import FLOAT, INT32, node, run_tests, shape
from thalweg_serve import (Server, answer_of, binary, constant, gate, identity, is_quiet, left, negative, received, rows_of, send, tensor, until,
                           written)

# ---- Hostile and slow clients ----

def test_the_end_of_a_request_is_certain(folder):
    request = json.dumps({"inputs": [tensor("x", "FP32", [1, 2], [1, 2])]}).encode()
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\n"
    whole = head + b"Content-Length: %d\r\n\r\n" % len(request) + request
    with Server(negative(f"{folder}/m.pb"), "--io-timeout-ms", "500") as server:
        with server.socket() as c:  # pipelined requests are answered in order
            c.sendall(whole + b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n" + whole)
            assert [answer_of(c)[0] for _ in range(3)] == [200, 200, 200]
        hidden = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
        for lengths, status in [(b"Content-Length: 5\r\nContent-Length: 6\r\n", 400), (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
                                (b"Content-Length: -5\r\n", 400), (b"Content-Length: 5x\r\n", 400), (b"Content-Length: 99999999999999999999\r\n", 400),
                                (b"Transfer-Encoding: gzip\r\n", 501), (b"", 411)]:
            with server.socket() as c:
                c.sendall(head + lengths + b"\r\n" + hidden)
                data = received(c)
                assert data.startswith(b"HTTP/1.1 %d " % status) and data.count(b"HTTP/1.1 ") == 1, (lengths, data)
                assert b"Connection: close" in data and b'{"error": ' in data, (lengths, data)
        with server.socket() as c:  # a body that nobody reads is not taken for a request
            c.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden)
            assert received(c).count(b"HTTP/1.1 ") == 1
        for text in (b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"GET /v2 HTTP/9.9\r\n\r\n", b"\0\1\2\r\n\r\n", b"GET /v2 HTTP/1.1\r\n" + b"A: b\r\n" * 20000,
                     b"GET /" + b"a" * 200000, b"GET /v2 HTTP/1.1\r\nX: " + b"a" * 200000):
            with server.socket() as c:
                try:
                    c.sendall(text)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the server had read enough
                data = received(c)
                assert data == b"" or data.startswith(b"HTTP/1.1 4"), data
        # Lines that one reader skips and another one reads.
        for line in (b"Content-Length : 2\r\n", b"Content-Length:\r\n 2\r\n", b"Content-Length: %32\r\n", b"Content-Length:\r\n", b"Content-Length: 2\n",
                     b"Transfer-Encoding:\r\n chunked\r\n", b"X: a\rb\r\n", b"X: \0\r\n", b"no field\r\n", b": x\r\n", b"\n", b"\r\r\n",
                     b"A: b\r\n" * 300):
            with server.socket() as c:
                c.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n" + line + b"\r\n" + hidden)
                data = received(c)
                assert data.startswith(b"HTTP/1.1 400 ") and data.count(b"HTTP/1.1 ") == 1, (line[:40], data)
        chunk, end = b"%x\r\n%s\r\n" % (len(request), request), b"0\r\n\r\n"
        for chunks in (b"0x" + chunk + end, b"+" + chunk + end, b" " + chunk + end, b"%xz" % len(request) + chunk[2:] + end, chunk[:-2] + b"\n" + end,
                       chunk[:-2] + b"zz\r\n" + end, chunk + b"0\r\nX: y\r\n\r\n", b"%x;" % len(request) + b"a" * 10000 + chunk[2:] + end):
            with server.socket() as c:
                c.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + hidden)
                data = received(c)
                assert data.startswith(b"HTTP/1.1 400 ") and data.count(b"HTTP/1.1 ") == 1, (chunks[:20], data)
        with server.socket() as c:
            c.sendall(head.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + end)
            assert received(c).startswith(b"HTTP/1.1 400 ")
        with server.socket() as c:  # a chunk may have an extension
            c.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x ;a=b" % len(request) + chunk[2:] + end + whole)
            assert [answer_of(c)[0] for _ in range(2)] == [200, 200]
        with server.socket() as c:  # a body that ends early, by the client and by the clock
            c.sendall(whole[:-3])
            c.shutdown(1)
            assert b" 400 " in received(c)[:20]
        with server.socket() as c:
            c.sendall(whole[:-3])
            assert b" 400 " in received(c)[:20]
        assert server.get("/v2/health/live")["live"]


def test_slow_and_many_clients_do_not_keep_others_out(folder):
    with Server(negative(f"{folder}/m.pb"), "--max-connections", "20", "--io-timeout-ms", "300") as server:
        slow = [server.socket() for _ in range(300)]
        for i, c in enumerate(slow):
            if i % 2:
                c.sendall(b"POST /v2/models/m/infer HTTP/1.1\r\nHost")
        assert server.post("/v2/models/m/infer", {"inputs": [tensor("x", "FP32", [1, 2], [1, 2])]})
        for c in slow:
            if c.fileno() % 3 == 0:
                received(c)
            c.close()
        kept = [http.client.HTTPConnection("127.0.0.1", server.port) for _ in range(60)]
        for c in kept:  # more connections that stay open than threads
            c.request("GET", "/v2/health/live")
            assert c.getresponse().read() == b'{"live": true}\n'
        assert server.get("/v2/health/live")["live"]
        for c in kept:
            c.close()
        # A client that does not read its answer loses its connection, and the server its thread for no longer.
        with server.socket() as c:
            try:
                while True:
                    c.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
            except (BrokenPipeError, ConnectionResetError, TimeoutError):
                pass
        assert server.get("/v2/health/live")["live"]


def test_the_time_of_a_request_ends_its_body_too(folder):
    with Server(negative(f"{folder}/m.pb"), "--timeout-ms", "20") as server, server.socket() as c:
        c.sendall(b"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        until(lambda: not is_quiet(c) or c.sendall(b" "))
        status, body = answer_of(c)
        assert status == 504 and b"before its body was whole" in body, body


def test_a_server_that_was_out_of_files_accepts_connections_again(folder):
    with Server(negative(f"{folder}/m.pb")) as server:
        pid = server.process.pid
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))  # those that are open stay so
        # The system may have set a descriptor aside for the call that waits; the first connection takes it.
        with server.socket(), server.socket() as c:
            c.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            until(lambda: any("cannot accept a connection: Too many open files" in line for line in server.errors))
            assert is_quiet(c)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
            assert answer_of(c)[0] == 200


# ---- Clients that leave ----

def test_the_run_of_a_client_that_leaves_is_cancelled(folder):
    gate(f"{folder}/gate")
    with Server(f"{folder}/gate", "--log") as server:
        connection = send(server, "gate", {"inputs": [1]})
        until(lambda: rows_of(server.metrics(), "gate")[0] == 1)  # it runs, and waits for a value
        connection.close()
        until(lambda: left(server, "gate") == 1)
        # TCP does not tell a client that only stops to send from one that is gone; such a client gets an answer.
        with send(server, "gate", {"inputs": [1]}) as connection:
            until(lambda: rows_of(server.metrics(), "gate")[0] == 2)
            connection.shutdown(socket.SHUT_WR)
            status, body = answer_of(connection)
        assert status == 499 and "closed the connection" in json.loads(body)["error"], body
        assert server.metrics()["thalweg_requests_in_flight"] == 0
        # The cancelled runs have taken no value.
        assert server.post("/v1/models/gate:predict", {"signature_name": "put", "inputs": [41]}) == {"outputs": [41]}
        assert server.post("/v1/models/gate:predict", {"inputs": [1]}) == {"outputs": [42]}
        said = server.stop()
    assert said.count(" 499 ") == 2, said


# ---- Limits ----

def test_requests_beyond_the_limit_are_sent_away(folder):
    gate(f"{folder}/gate")
    ask, opens = json.dumps({"inputs": [1]}).encode(), json.dumps({"signature_name": "put", "inputs": [41]}).encode()
    head = b"POST /v1/models/gate:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    with Server(f"{folder}/gate", "--max-requests", "2") as server, server.socket() as waiting, server.socket() as later:
        waiting.sendall(head % len(ask) + ask)
        later.sendall(head % len(opens) + opens[:-1])
        until(lambda: server.metrics()["thalweg_requests_in_flight"] == 2)
        status, headers, body = server.ask("POST", "/v1/models/gate:predict", ask)
        assert status == 429 and headers["Retry-After"] == "1" and "2 requests run already" in json.loads(body)["error"], body
        assert server.get("/v2/health/live")["live"] and server.get("/v1/models/gate")  # these need no place
        later.sendall(opens[-1:])
        assert answer_of(later) == (200, b'{"outputs": [41.0]}\n') and answer_of(waiting) == (200, b'{"outputs": [42.0]}\n')
        # The earliest deadline counts, wherever it is from.
        for headers, parameters in [({"X-Request-Timeout-Ms": "20"}, {}), ({}, {"timeout": 20000}), ({"X-Request-Timeout-Ms": "900000"}, {"timeout": 20000})]:
            request = {"inputs": [tensor("w", "FP32", [1], [1])], "parameters": parameters}
            said = server.error("/v2/models/gate/infer", request, 504, headers)
            assert "model 'gate'" in said, said
        for wrong in ("0", "-1", "x", "1e3", "99999999999"):
            assert "X-Request-Timeout-Ms is" in server.error("/v1/models/gate:predict", ask, 400, {"X-Request-Timeout-Ms": wrong})
    with Server(f"{folder}/gate", "--timeout-ms", "20") as server:
        assert server.error("/v1/models/gate:predict", ask, 504)


def held(server):
    """Returns the bytes that requests in flight hold."""
    return server.metrics()["thalweg_request_memory_bytes"]


def test_requests_in_flight_share_one_budget_of_memory(folder):
    identity(f"{folder}/same/1/model.pb", 1, -1)
    request = json.dumps({"inputs": [1], "comment": "x" * 400000})
    with Server("--models", folder, "--request-memory", "16M") as server:
        assert server.metrics()["thalweg_request_memory_limit_bytes"] == 16 << 20
        assert server.post("/v1/models/same:predict", request) == {"outputs": [1]}
        with server.socket() as c:  # its body is charged before it comes
            c.sendall(b"POST /v1/models/same:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 16500000\r\n\r\n")
            until(lambda: held(server) >= 16500000)
            status, headers, body = server.ask("POST", "/v1/models/same:predict", request)
            said = json.loads(body)["error"]
            assert status == 429 and headers["Retry-After"] == "1" and "--request-memory" in said and "try again" in said, (status, body)
            assert server.get("/v2/health/ready") == {"ready": True}
            assert server.post("/v1/models/same:predict", {"inputs": [2]}) == {"outputs": [2]}  # there is room for a small one
        until(lambda: held(server) == 0)
        assert server.post("/v1/models/same:predict", request) == {"outputs": [1]}


def test_the_memory_of_a_request_counts_in_all_its_forms(folder):
    identity(f"{folder}/same/1/model.pb", 1, -1)
    identity(f"{folder}/text/1/model.pb", 7, -1)
    # y is x ones.
    written(f"{folder}/ones/1/model.pb", node("x", "Placeholder", dtype=INT32, shape=shape(-1)) + constant("one", 1, [], struct.pack("<f", 1)) +
            node("y", "Fill", "x", "one", T=FLOAT))
    zeros = {"name": "x", "shape": [200000], "datatype": "FP32", "parameters": {"binary_data_size": 800000}}
    with Server("--models", folder, "--request-memory", "1M") as server:
        with server.socket() as c:  # a body, before it comes
            c.sendall(b"POST /v1/models/same:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n")
            status, body = answer_of(c)
            assert status == 413 and "--request-memory" in json.loads(body)["error"], body
        many = "[" + "0," * 60000 + "0]"
        cases = [
            ("same", b" " * 5_000_000, {"Content-Encoding": "gzip"}),  # a body that grows as it is unpacked
            ("same", b'{"inputs": [1]}', {"Content-Encoding": "br"}),  # Brotli's window alone
            ("same", f'{{"inputs": {many}}}'.encode(), {}),  # values of JSON
            ("text", json.dumps({"inputs": ["x" * 150000]}).encode(), {}),  # a long word of JSON
            ("same", b'{"inputs": [1]}' + b" " * 150000, {}),  # blanks, which the library stores
            ("ones", b'{"inputs": [300000]}', {}),  # outputs
            ("ones", b'{"inputs": [100000]}', {}),  # the text of the answer
        ]
        for model, body, headers in cases:
            sent = gzip.compress(body) if headers.get("Content-Encoding") == "gzip" else body
            said = server.error(f"/v1/models/{model}:predict", sent, 413, headers)
            assert "--request-memory" in said, (model, said)
            until(lambda: held(server) == 0)
        # Binary data: the body alone fits, but not beside the outputs.
        status, _, body = server.ask("POST", "/v2/models/same/infer", *binary({"inputs": [zeros], "parameters": {"binary_data_output": True}}, bytes(800000)))
        assert status == 413 and "--request-memory" in json.loads(body)["error"], body
        assert server.post("/v1/models/ones:predict", {"inputs": [1000]}) == {"outputs": [1] * 1000}
        until(lambda: held(server) == 0)


sys.exit(run_tests(globals()))
