"""Tests of `thalweg serve`: hostile, slow and many clients, clients that leave, and limits."""
import http.client
import json
import resource
import socket
import sys

from thalweg_command import run_tests
from thalweg_serve import Server, answer_of, gate, is_quiet, left, negative, received, rows_of, send, tensor, until

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


sys.exit(run_tests(globals()))
