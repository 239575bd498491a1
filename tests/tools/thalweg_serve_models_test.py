"""Tests of `thalweg serve`: the life of models, from the arguments and the loading to the end; versions and batches."""
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys

from thalweg_command import FLOAT, INT32, THALWEG, dtype, field, node, run, run_tests, shape
from thalweg_serve import (Server, answer_of, ask_binary, constant, gate, identity, is_quiet, left, negative, received, refuses, rows_of, send,
                           tensor, together, unending, until, written)

# ---- Batches ----

def test_clients_together_get_the_bits_of_single_runs(folder):
    written(f"{folder}/m.pb", node("x", "Placeholder", dtype=FLOAT, shape=shape(-1, 64)) + node("m", "MatMul", "x", "x", T=FLOAT, transpose_b=field(5, 1)) +
            node("y", "Softmax", "m", T=FLOAT))
    odd = random.Random(3)
    requests, single = [], []
    for i in range(32):
        values = [struct.unpack("<f", struct.pack("<f", odd.gauss(0, 1)))[0] for _ in range(64 * (1 + i % 5))]
        data = struct.pack(f"<{len(values)}f", *values)
        sent = {"name": "x", "shape": [1 + i % 5, 64], "datatype": "FP32", "parameters": {"binary_data_size": len(data)}}
        requests.append(({"inputs": [sent], "parameters": {"binary_data_output": True}}, data))
    with Server(f"{folder}/m.pb", "--threads", "2") as server:
        single = [ask_binary(server, "/v2/models/m/infer", *r)[1] for r in requests]

        def client(i):
            return [ask_binary(server, "/v2/models/m/infer", *requests[(i + k) % 32])[1] == single[(i + k) % 32] for k in range(8)]

        assert all(map(all, together(*(lambda i=i: client(i) for i in range(32)))))
        m = server.metrics()
        assert m['thalweg_requests_total{model="m",version="1",protocol="v2",code="200"}'] == 32 + 256 and m["thalweg_requests_in_flight"] == 0, m
        assert m['thalweg_request_seconds_count{model="m",version="1",protocol="v2"}'] == 288
        assert m['thalweg_request_seconds_bucket{model="m",version="1",protocol="v2",le="+Inf"}'] == 288


def test_requests_that_wait_are_joined(folder):
    # A request waits for an hour or until four rows are there, so that only a full batch runs.
    with Server(negative(f"{folder}/m.pb"), "--max-batch", "4", "--batch-delay-us", "60000000") as server:
        def ask(*values):
            return server.post("/v1/models/m:predict", {"instances": [[v, v + 0.5] for v in values]})["predictions"]

        got = together(lambda: ask(1), lambda: ask(2), lambda: ask(3), lambda: ask(4))
        assert got == [[[-v, -v - 0.5]] for v in (1, 2, 3, 4)] and rows_of(server.metrics()) == (1, 4), got
        got = together(lambda: ask(1, 2, 3), lambda: ask(4))
        assert got == [[[-v, -v - 0.5] for v in (1, 2, 3)], [[-4, -4.5]]] and rows_of(server.metrics()) == (2, 8), got
        assert ask(1, 2, 3, 4, 5)[4] == [-5, -5.5] and rows_of(server.metrics()) == (3, 13)  # alone
    with Server(identity(f"{folder}/m.pb", 7, -1), "--max-batch", "2", "--batch-delay-us", "60000000") as server:  # strings
        got = together(*(lambda w=w: server.post("/v1/models/m:predict", {"instances": [w]}) for w in ("a", "bc")))
        assert got == [{"predictions": ["a"]}, {"predictions": ["bc"]}] and rows_of(server.metrics()) == (1, 2), got


def test_a_failure_in_a_batch_is_only_of_the_request_at_fault(folder):
    written(f"{folder}/m.pb", node("x", "Placeholder", dtype=INT32, shape=shape(-1)) + node("y", "FloorDiv", "x", "x", T=INT32))
    with Server(f"{folder}/m.pb", "--max-batch", "3", "--batch-delay-us", "60000000") as server:
        got = together(*(lambda v=v: server.ask("POST", "/v1/models/m:predict", json.dumps({"instances": [v]})) for v in (5, 0, 7)))
        assert [g[0] for g in got] == [200, 400, 200], got
        assert json.loads(got[0][2]) == json.loads(got[2][2]) == {"predictions": [1]} and b"FloorDiv" in got[1][2], got
        assert rows_of(server.metrics()) == (4, 6)  # joined, then apart


def test_only_what_agrees_is_joined(folder):
    # x [?, ?]: rows of different lengths are not joined; a model whose output has other rows than its input is never split.
    written(f"{folder}/ragged/1/m.pb", node("x", "Placeholder", dtype=FLOAT, shape=shape(-1, -1)) + node("y", "Neg", "x", T=FLOAT))
    written(f"{folder}/where/1/m.pb", node("x", "Placeholder", dtype=dtype(10), shape=shape(-1)) + node("y", "Where", "x", T=dtype(10)))
    fixed = node("x", "Placeholder", dtype=FLOAT, shape=shape(2, 1)) + node("y", "Neg", "x", T=FLOAT)
    written(f"{folder}/fixed/1/m.pb", fixed)
    with Server("--models", folder, "--max-batch", "2", "--batch-delay-us", "2000") as server:
        got = together(*(lambda n=n: server.post("/v1/models/ragged:predict", {"instances": [[1] * n]}) for n in (1, 2, 3)))
        assert got == [{"predictions": [[-1] * n]} for n in (1, 2, 3)] and rows_of(server.metrics(), "ragged") == (3, 3), got
        for _ in range(3):
            got = together(*(lambda v=v: server.post("/v1/models/where:predict", {"inputs": [v]}) for v in (True, False)))
            assert got == [{"outputs": [[0]]}, {"outputs": []}], got
        assert server.post("/v1/models/fixed:predict", {"instances": [[1], [2]]}) == {"predictions": [[-1], [-2]]}


def test_a_request_that_leaves_its_batch_is_left_out(folder):
    # A batch waits for a minute or until four rows are there, so that the test ends in time only if no row of a client that left counts.
    with Server(negative(f"{folder}/m.pb"), "--max-batch", "4", "--batch-delay-us", "60000000") as server:
        first, second = (send(server, "m", {"instances": [[v, v]]}) for v in (1, 2))
        until(lambda: server.metrics()["thalweg_requests_in_flight"] == 2)
        first.close()
        until(lambda: left(server, "m") == 1)
        got = together(*(lambda v=v: server.post("/v1/models/m:predict", {"instances": [[v, v]]}) for v in (3, 4, 5)))
        assert got == [{"predictions": [[-v, -v]]} for v in (3, 4, 5)] and rows_of(server.metrics()) == (1, 4), got
        assert answer_of(second) == (200, b'{"predictions": [[-2.0, -2.0]]}\n')
        second.close()
        alone = send(server, "m", {"instances": [[6, 6]]})
        until(lambda: server.metrics()["thalweg_requests_in_flight"] == 1)
        alone.close()
        until(lambda: left(server, "m") == 2)
        assert rows_of(server.metrics()) == (1, 4)  # nothing ran for it


def test_a_batch_that_nobody_waits_for_is_cancelled(folder):
    gate(f"{folder}/gate")
    with Server(f"{folder}/gate", "--max-batch", "2", "--batch-delay-us", "60000000") as server:
        connections = [send(server, "gate", {"inputs": [v]}) for v in (1, 2)]
        until(lambda: rows_of(server.metrics(), "gate") == (1, 2))
        for connection in connections:
            connection.close()
        until(lambda: left(server, "gate") == 2)
        assert server.post("/v1/models/gate:predict", {"signature_name": "put", "inputs": [40, 41]}) == {"outputs": [40, 41]}
        assert server.post("/v1/models/gate:predict", {"inputs": [1, 2]}) == {"outputs": [41, 43]}


def test_a_request_waits_for_others_for_half_of_its_time(folder):
    # Without the request that has little time the batch waits for a minute or four rows.
    with Server(negative(f"{folder}/m.pb"), "--max-batch", "4", "--batch-delay-us", "60000000") as server, \
            send(server, "m", {"instances": [[1, 2]]}) as patient:
        until(lambda: server.metrics()["thalweg_requests_in_flight"] == 1)
        got = server.post("/v1/models/m:predict", {"instances": [[3, 4]]}, headers={"X-Request-Timeout-Ms": "2000"})
        assert got == {"predictions": [[-3, -4]]}, got
        assert answer_of(patient) == (200, b'{"predictions": [[-1.0, -2.0]]}\n') and rows_of(server.metrics()) == (1, 2)


def test_a_request_that_leads_a_batch_is_answered_at_its_own_deadline(folder):
    gate(f"{folder}/gate")
    with Server(f"{folder}/gate", "--max-batch", "2", "--batch-delay-us", "60000000") as server, \
            send(server, "gate", {"inputs": [1]}, X_Request_Timeout_Ms=3000) as leader:
        until(lambda: server.metrics()["thalweg_requests_in_flight"] == 1)
        with send(server, "gate", {"inputs": [2]}) as follower:
            until(lambda: rows_of(server.metrics(), "gate") == (1, 2))  # it runs, and waits for values
            status, body = answer_of(leader)
            assert status == 504 and "while its batch ran" in json.loads(body)["error"], (status, body)
            assert is_quiet(follower)
            assert server.post("/v1/models/gate:predict", {"signature_name": "put", "inputs": [40, 41]}) == {"outputs": [40, 41]}
            assert answer_of(follower) == (200, b'{"outputs": [43.0]}\n')


def test_a_client_whose_request_leads_a_running_batch_may_leave(folder):
    gate(f"{folder}/gate")
    with Server(f"{folder}/gate", "--max-batch", "2", "--batch-delay-us", "60000000") as server:
        leader = send(server, "gate", {"inputs": [1]})
        until(lambda: server.metrics()["thalweg_requests_in_flight"] == 1)
        with send(server, "gate", {"inputs": [2]}) as follower:
            until(lambda: rows_of(server.metrics(), "gate") == (1, 2))
            leader.close()
            until(lambda: left(server, "gate") == 1)  # its place is free while the batch runs
            assert is_quiet(follower)
            assert server.post("/v1/models/gate:predict", {"signature_name": "put", "inputs": [40, 41]}) == {"outputs": [40, 41]}
            assert answer_of(follower) == (200, b'{"outputs": [43.0]}\n')


# ---- Versions ----

def put(folder, name, version, make, *arguments):
    """Adds a version as a careful person does: whole, by one rename."""
    hidden = pathlib.Path(folder) / f".{name}-{version}"
    make(hidden / "model.pb", *arguments)
    (pathlib.Path(folder) / name).mkdir(exist_ok=True)
    hidden.rename(pathlib.Path(folder) / name / str(version))


def states(server, name="m"):
    return {s["version"]: s["state"] for s in server.get(f"/v1/models/{name}")["model_version_status"]}


def test_new_versions_are_loaded_and_requests_finish_on_theirs(folder):
    put(folder, "m", 1, negative)
    request = json.dumps({"inputs": [tensor("x", "FP32", [1, 2], [1, 2])]}).encode()
    with Server("--models", folder, "--poll", "0.02") as server:
        with server.socket() as c:  # begun on version 1, which is known before the body is there
            c.sendall(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(request) + request[:9])
            until(lambda: server.metrics()["thalweg_requests_in_flight"] == 1)
            put(folder, "m", 2, negative, "Square")
            until(lambda: states(server) == {"2": "AVAILABLE"})
            assert server.post("/v1/models/m:predict", {"inputs": [[3, 4]]}) == {"outputs": [[9, 16]]}
            assert "these are: 2" in server.get("/v2/models/m/versions/1", 404)["error"]
            assert is_quiet(c)
            c.sendall(request[9:])
            status, body = answer_of(c)
            assert status == 200 and json.loads(body)["model_version"] == "1" and json.loads(body)["outputs"][0]["data"] == [-1, -2], body
        put(folder, "m", 3, lambda path: written(path, b"nonsense"))  # the old version stays
        until(lambda: states(server) == {"3": "END", "2": "AVAILABLE"})
        broken = server.get("/v1/models/m/versions/3")["model_version_status"][0]["status"]
        assert broken["error_code"] == "INVALID_ARGUMENT" and "no importer recognises" in broken["error_message"], broken
        assert server.post("/v1/models/m:predict", {"inputs": [[3, 4]]}) == {"outputs": [[9, 16]]} and server.get("/v2/health/ready")["ready"]
        negative(f"{folder}/m/3/model.pb", "Abs")  # repaired
        until(lambda: states(server) == {"3": "AVAILABLE"})
        assert server.post("/v1/models/m:predict", {"inputs": [[-3, 4]]}) == {"outputs": [[3, 4]]}
        shutil.rmtree(f"{folder}/m/3")  # back to the one before
        until(lambda: states(server) == {"2": "AVAILABLE"})
        put(folder, "n", 7, negative)
        until(lambda: "n" in server.ask("GET", "/metrics")[2].decode() and server.ask("GET", "/v2/models/n")[0] == 200)
        shutil.rmtree(f"{folder}/m")
        until(lambda: server.ask("GET", "/v2/models/m")[0] == 404)
        m = server.metrics()
        assert m['thalweg_model_loads_total{model="m",result="failed"}'] >= 1 and m['thalweg_model_ready{model="n",version="7"}'] == 1, m
        os.rename(folder, folder + "-away")  # nothing is let go for a folder that cannot be read
        try:
            until(lambda: any("stay as they are" in line for line in server.errors))
            assert server.post("/v1/models/n:predict", {"inputs": [[3, 4]]}) == {"outputs": [[-3, -4]]}
        finally:
            os.rename(folder + "-away", folder)
        said = server.stop()
    assert "model 'm' version 3 was not loaded" in said and "model 'm' version 2: loaded" in said, said


def test_all_versions_are_served_if_asked(folder):
    put(folder, "m", 1, negative)
    put(folder, "m", 10, negative, "Square")
    put(folder, "m", 9, lambda path: written(path, b""))
    (pathlib.Path(folder) / "m" / "notes").mkdir()
    (pathlib.Path(folder) / "m" / "007").mkdir()
    (pathlib.Path(folder) / "none").mkdir()
    (pathlib.Path(folder) / "README").write_text("a file")
    gate(f"{folder}/gate/4/model.savedmodel")
    gate(f"{folder}/plain/5")
    with Server("--models", folder, "--versions", "all", "--label", "m:old=1") as server:
        assert server.get("/v2/models/m")["versions"] == ["10", "1"] and states(server) == {"10": "AVAILABLE", "9": "END", "1": "AVAILABLE"}
        for address, value in [("m", 4), ("m/versions/10", 4), ("m/versions/1", -2), ("m/labels/old", -2)]:
            assert server.post(f"/v1/models/{address}:predict", {"inputs": [[2, 2]]}) == {"outputs": [[value, value]]}, address
        assert server.get("/v2/models/gate")["inputs"][0]["name"] == server.get("/v2/models/plain")["inputs"][0]["name"] == "w"
        assert "not ready: it has no version" in server.get("/v2/models/none", 503)["error"]
        assert server.get("/v2/health/ready", 503) == {"ready": False}
    with Server("--models", folder) as server:
        assert server.get("/v2/models/m")["versions"] == ["10"]


# ---- Memory ----

def test_the_memory_of_a_model_is_bounded(folder):
    # y is the sum of x ones.
    written(f"{folder}/m.pb", node("x", "Placeholder", dtype=INT32, shape=shape()) + constant("one", 1, [], struct.pack("<f", 1)) +
            node("dims", "Pack", "x", N=field(3, 1), T=INT32) + node("ones", "Fill", "dims", "one", T=FLOAT) +
            constant("axis", 3, [], struct.pack("<i", 0)) + node("y", "Sum", "ones", "axis", T=FLOAT))
    with Server(f"{folder}/m.pb", "--memory-limit", "1000000") as server:
        assert server.post("/v1/models/m:predict", {"inputs": 10}) == {"outputs": 10}
        said = server.error("/v1/models/m:predict", {"inputs": 2**30}, 503)
        assert "model 'm'" in said and "1000000" in said, said
        assert server.post("/v1/models/m:predict", {"inputs": 10}) == {"outputs": 10}


# ---- The beginning and the end ----

def test_a_server_whose_models_are_being_loaded_says_so_and_ends_at_once(folder):
    negative(f"{folder}/fast/1/model.pb")
    unending(f"{folder}/slow/1")
    negative(f"{folder}/waits/1/model.pb")
    for end in (signal.SIGTERM, signal.SIGINT):
        with Server("--models", folder, loading=True) as server:
            until(lambda: states(server, "slow") == {"1": "LOADING"})  # models are loaded in the order of their names
            assert server.get("/v2/health/live") == {"live": True} and server.get("/v2/health/ready", 503) == {"ready": False}
            assert server.post("/v1/models/fast:predict", {"inputs": [[1, 2]]}) == {"outputs": [[-1, -2]]}
            status, headers, body = server.ask("POST", "/v1/models/slow:predict", '{"inputs": [1]}')
            assert status == 503 and headers["Retry-After"] == "1" and "version 1 is being loaded" in json.loads(body)["error"], body
            assert "is being loaded" in server.get("/v2/models/slow/versions/1/ready", 503)["error"]
            assert states(server, "waits") == {"1": "START"} and "will be loaded" in server.get("/v2/models/waits", 503)["error"]
            server.process.send_signal(end)
            said = server.wait()
        assert f"{end.name} while model 'slow' version 1 is being loaded, which is abandoned" in said, said


def test_a_version_that_is_being_loaded_does_not_keep_the_server_from_ending(folder):
    put(folder, "m", 1, negative)
    with Server("--models", folder, "--poll", "0.02") as server:
        os.rename(unending(f"{folder}/.new"), f"{folder}/m/2")
        until(lambda: states(server) == {"2": "LOADING", "1": "AVAILABLE"})
        assert server.post("/v1/models/m:predict", {"inputs": [[1, 2]]}) == {"outputs": [[-1, -2]]} and server.get("/v2/health/ready")["ready"]
        said = server.stop()
    assert "model 'm' version 2 is still being loaded, which is abandoned" in said, said


def test_a_signal_lets_running_requests_finish(folder):
    request = json.dumps({"inputs": [[1, 2]]}).encode()
    for end in (signal.SIGTERM, signal.SIGINT):
        with Server(negative(f"{folder}/m.pb")) as server, server.socket() as running, server.socket() as idle:
            idle.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answer_of(idle)[0] == 200
            running.sendall(b"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(request) + request[:5])
            until(lambda: server.metrics()["thalweg_requests_in_flight"] == 1)
            server.process.send_signal(end)
            until(lambda: refuses(server))
            assert received(idle) == b""  # closed at once
            assert server.process.poll() is None and is_quiet(running)
            running.sendall(request[5:])
            data = received(running)
            assert data.startswith(b"HTTP/1.1 200 ") and b"Connection: close" in data and data.endswith(b'{"outputs": [[-1.0, -2.0]]}\n'), data
            server.wait()


def test_what_does_not_finish_is_ended(folder):
    gate(f"{folder}/gate")
    with Server(f"{folder}/gate", "--drain-ms", "50") as server, server.socket() as running, server.socket() as slow:
        ask = json.dumps({"inputs": [1]}).encode()
        running.sendall(b"POST /v1/models/gate:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(ask) + ask)
        slow.sendall(b"POST /v1/models/gate:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
        until(lambda: server.metrics()["thalweg_requests_in_flight"] == 2)
        server.stop()
        received(running)
        received(slow)


def test_wrong_arguments_are_named(folder):
    model = negative(f"{folder}/m.pb")
    for arguments, part in [((), "give a model or --models FOLDER"), ((model, "--models", folder), "give a model or --models FOLDER"),
                            ((model, "--port", "65536"), "at most 65535"), ((model, "--versions", "some"), "latest or all"),
                            ((model, "--label", "x"), "MODEL:LABEL=VERSION"), ((model, "--allow-origin", "a.example/x"), "https://example.org"), ((model, "--max-batch", "0"), "at least 1"),
                            ((model, "--request-memory", "0"), "--request-memory takes a number of bytes"), ((model, "--max-request-bytes", "1X"), "such as 65536, 32M or 2G, not '1X'"),
                            (("--models", folder, "--name", "x"), "--name"), ((model, "--name", "a/b"), "without '/'"), ((model, "--poll", "1"), "for --models"), ((model, "--polls", "1"), "did you mean '--poll'")]:
        assert part in run("serve", *arguments, status=2), arguments
    assert "nothing" in run("serve", f"{folder}/nothing.pb", status=1)
    assert "colour" in run("serve", model, "--session-option", "colour=red", status=1)
    assert "'/nowhere'" in run("serve", "--models", "/nowhere", status=1)
    assert f"is no folder; to serve this one model: thalweg serve {model}" in run("serve", "--models", model, status=1)
    assert "holds no model" in run("serve", "--models", folder, status=1) and "NAME/VERSION/" in run("serve", "--models", folder, status=1)
    assert "listen at 203.0.113.1:0" in run("serve", model, "--host", "203.0.113.1", "--port", "0", status=1)
    with Server(model) as server:
        taken = subprocess.run([str(THALWEG), "serve", str(model), "--port", str(server.port)], capture_output=True, text=True)
        assert taken.returncode == 1 and "Address already in use" in taken.stderr, taken
    with Server(model, "--name", "other name") as server:
        assert server.get("/v2/models/other%20name")["name"] == "other name"


sys.exit(run_tests(globals()))
