"""Tests of `thalweg serve`: both protocols, wrong requests, slow clients, batches, versions, the end."""
import base64
import gzip
import http.client
import json
import math
import os
import pathlib
import random
import resource
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import zlib

from thalweg_command import FLOAT, INT32, THALWEG, dtype, field, node, run, run_tests, shape
from thalweg_serve import (Server, answer_of, constant, gate, identity, is_quiet, negative, received, together, until, written)

# Each datatype: the number of its type, the format of its values for `struct`, and values at its ends.
DATATYPES = {
    "BOOL": (10, "?", [True, False, True]),
    "UINT8": (4, "B", [0, 1, 255]), "UINT16": (17, "H", [0, 1, 65535]), "UINT32": (22, "I", [0, 1, 2**32 - 1]),
    "UINT64": (23, "Q", [0, 1, 2**64 - 1]),
    "INT8": (6, "b", [-128, 0, 127]), "INT16": (5, "h", [-2**15, 0, 2**15 - 1]), "INT32": (3, "i", [-2**31, 0, 2**31 - 1]),
    "INT64": (9, "q", [-2**63, 0, 2**63 - 1]),
    "FP16": (19, "e", [0.5, -65504.0, 2.0**-24]), "FP32": (1, "f", [0.100000001490116119384765625, -3.5, 2.0**-149]),
    "FP64": (2, "d", [0.1, -1.7976931348623157e308, 5e-324]), "BF16": (14, None, [1.5, -3.0, 2.0**-133]),
}


def bfloat16(values):
    return b"".join(struct.pack("<f", v)[2:] for v in values)


def packed(datatype, values):
    form = DATATYPES[datatype][1]
    return struct.pack(f"<{len(values)}{form}", *values) if form else bfloat16(values)


def tensor(name, datatype, dims, data):
    return {"name": name, "shape": dims, "datatype": datatype, "data": data}


def binary(request, *parts):
    """Returns body and headers of a request with binary tensor data."""
    text = json.dumps(request).encode()
    return text + b"".join(parts), {"Inference-Header-Content-Length": str(len(text)), "Content-Type": "application/octet-stream"}


def ask_binary(server, path, request, *parts):
    """Returns the JSON of the answer, and the bytes behind it."""
    status, headers, body = server.ask("POST", path, *binary(request, *parts))
    assert status == 200, body
    n = int(headers["Inference-Header-Content-Length"])
    assert headers["Content-Type"] == "application/octet-stream"
    return json.loads(body[:n]), body[n:]


# ---- The Open Inference Protocol ----

def test_one_model_is_described_and_run(folder):
    with Server(negative(f"{folder}/negative.pb"), "--log") as server:
        assert server.get("/v2")["name"] == "thalweg" and "binary_tensor_data" in server.get("/v2")["extensions"]
        assert server.get("/v2/health/live") == {"live": True} and server.get("/v2/health/ready") == {"ready": True}
        about = server.get("/v2/models/negative")
        assert about["name"] == "negative" and about["versions"] == ["1"], about
        assert about["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}], about
        assert about["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}], about
        assert server.get("/v2/models/negative/versions/1") == about
        assert server.get("/v2/models/negative/ready") == server.get("/v2/models/negative/versions/1/ready") == {"name": "negative", "ready": True}
        flat, nested = [1, 2.5, -3, 1e-3], [[1, 2.5], [-3, 1e-3]]
        for data in (flat, nested):
            got = server.post("/v2/models/negative/infer", {"id": "a \"b\"", "inputs": [tensor("x", "FP32", [2, 2], data)]})
            assert got == {"model_name": "negative", "model_version": "1", "id": "a \"b\"",
                           "outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 2], "data": [-1, -2.5, 3, -0.001]}]}, got
        got = server.post("/v2/models/negative/versions/1/infer", {"inputs": [tensor("x", "FP32", [0, 2], [])], "outputs": [{"name": "y"}]})
        assert got["outputs"][0]["shape"] == [0, 2] and got["outputs"][0]["data"] == [] and "id" not in got, got
        assert server.ask("HEAD", "/v2/models/negative")[::2] == (200, b"")
        said = server.stop()
    assert "127.0.0.1 POST /v2/models/negative/infer 200" in said, said


def test_every_datatype_is_carried_as_json_and_as_bytes(folder):
    for name, (number, _, _) in DATATYPES.items():
        identity(f"{folder}/{name}/1/model.pb", number)
    identity(f"{folder}/BYTES/1/model.pb", 7)
    with Server("--models", folder) as server:
        for name, (_, _, values) in DATATYPES.items():
            path, data = f"/v2/models/{name}/infer", packed(name, values)
            got = server.post(path, {"inputs": [tensor("x", name, [3], values)]})["outputs"][0]
            # Numbers are the shortest that read back as the same value of their type.
            assert packed(name, got["data"]) == data and type(got["data"][0]) is type(values[0]), (name, got)
            assert {**got, "data": 0} == tensor("y", name, [3], 0), (name, got)
            assert server.post(path, {"inputs": [tensor("x", name, [3, 1], [[v] for v in values])]})["outputs"][0]["data"] == got["data"]
            asked = {"inputs": [tensor("x", name, [1, 3], values)], "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}
            status, headers, body = server.ask("POST", path, json.dumps(asked))
            n = int(headers["Inference-Header-Content-Length"])
            about = json.loads(body[:n])["outputs"][0]
            assert status == 200 and body[n:] == data and about == {
                "name": "y", "datatype": name, "shape": [1, 3], "parameters": {"binary_data_size": len(data)}}, (name, about)
            sent = {"name": "x", "shape": [3], "datatype": name, "parameters": {"binary_data_size": len(data)}}
            got, rest = ask_binary(server, path, {"inputs": [sent], "parameters": {"binary_data_output": True}}, data)
            assert rest == data and got["outputs"][0]["parameters"] == {"binary_data_size": len(data)}, name
        words = ["", "a", "\u00e4\"\\\n", "\U0001f600"]
        path = "/v2/models/BYTES/infer"
        assert server.post(path, {"inputs": [tensor("x", "BYTES", [2, 2], words)]})["outputs"][0]["data"] == words
        raw = [b"\xff\x00", b"", "\u00e4".encode()]
        data = b"".join(struct.pack("<I", len(r)) + r for r in raw)
        request = {"inputs": [{"name": "x", "shape": [3], "datatype": "BYTES", "parameters": {"binary_data_size": len(data)}}]}
        assert ask_binary(server, path, {**request, "parameters": {"binary_data_output": True}}, data)[1] == data
        status, _, body = server.ask("POST", path, *binary(request, data))
        assert status == 400 and "output 'y': value 0 is no UTF-8" in json.loads(body)["error"], body
        # Every half-precision number, as JSON and back. NaN, the only one that is not equal to itself, is compared by name.
        halves = bytes(b for bits in range(65536) for b in struct.pack("<H", bits))
        request = {"inputs": [{"name": "x", "shape": [65536], "datatype": "FP16", "parameters": {"binary_data_size": 131072}}]}
        status, _, body = server.ask("POST", "/v2/models/FP16/infer", *binary(request, halves))
        got, want = struct.unpack("<65536e", struct.pack("<65536e", *json.loads(body)["outputs"][0]["data"])), struct.unpack("<65536e", halves)
        assert all(g == w or (math.isnan(g) and math.isnan(w)) for g, w in zip(got, want, strict=True))
        finite = [w for w in want if math.isfinite(w)]
        asked = {"inputs": [tensor("x", "FP16", [len(finite)], finite)], "parameters": {"binary_data_output": True}}
        _, headers, body = server.ask("POST", "/v2/models/FP16/infer", json.dumps(asked))
        assert body[int(headers["Inference-Header-Content-Length"]):] == struct.pack(f"<{len(finite)}e", *finite)
        # Ties go to the even neighbour; struct rounds the same way.
        odd = random.Random(5)
        numbers = [odd.uniform(-70000, 70000) * 2.0**odd.randint(-40, 0) for _ in range(2000)] + [65519.9, 2049.0, 2051.0, 2.0**-25, 3 * 2.0**-25]
        numbers = [v for v in (struct.unpack("<f", struct.pack("<f", n))[0] for n in numbers) if abs(v) < 65520]
        asked["inputs"] = [tensor("x", "FP16", [len(numbers)], numbers)]
        _, headers, body = server.ask("POST", "/v2/models/FP16/infer", json.dumps(asked))
        assert body[int(headers["Inference-Header-Content-Length"]):] == struct.pack(f"<{len(numbers)}e", *numbers)


def test_values_outside_their_type_are_refused(folder):
    wrong = {"BOOL": [0, "true", None], "UINT8": [256, -1, 1.0, "1", True], "UINT16": [65536], "UINT32": [2**32, -1], "UINT64": [2**64, -1],
             "INT8": [128, -129], "INT16": [2**15], "INT32": [2**31, -2**31 - 1, 0.5], "INT64": [2**63, -2**63 - 1],
             "FP16": [65520, -1e10, "1"], "FP32": [1e39, -1e300, None, [1]], "FP64": ["1", False, {}], "BF16": [3.4e38 * 1.01, True],
             "BYTES": [1, None, {"b64": "YQ=="}]}
    for name in wrong:
        identity(f"{folder}/{name}/1/model.pb", DATATYPES[name][0] if name in DATATYPES else 7)
    with Server("--models", folder) as server:
        for name, values in wrong.items():
            for value in values:
                said = server.error(f"/v2/models/{name}/infer", {"inputs": [tensor("x", name, [1], [value])]})
                assert f"model '{name}', input 'x'" in said, (name, value, said)
        text = json.dumps({"inputs": [tensor("x", "FP32", [1], ["?"])]})
        for word in ("NaN", "Infinity", "-Infinity"):
            said = server.error("/v2/models/FP32/infer", text.replace('"?"', word))
            assert "no JSON, at byte" in said and ("NaN" in said or word == "-Infinity"), said
        assert "no JSON" in server.error("/v2/models/FP64/infer", text.replace('"?"', "1e999").replace("FP32", "FP64"))
        # The binary form carries them, and answers name them as Python's parser does.
        data = struct.pack("<3f", math.nan, math.inf, -math.inf)
        request = {"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "parameters": {"binary_data_size": 12}}]}
        status, _, body = server.ask("POST", "/v2/models/FP32/infer", *binary(request, data))
        assert status == 200 and b'"data": [NaN, Infinity, -Infinity]' in body, body


def test_wrong_requests_are_named(folder):
    written(f"{folder}/two.pb", node("a", "Placeholder", dtype=FLOAT, shape=shape(-1, 2)) + node("b", "Placeholder", dtype=INT32, shape=shape(-1)) +
            node("y", "Neg", "a", T=FLOAT) + node("z", "Neg", "b", T=INT32))
    a, b = tensor("a", "FP32", [1, 2], [1, 2]), tensor("b", "INT32", [1], [3])
    with Server(f"{folder}/two.pb", "--max-request-bytes", "20000") as server:
        path = "/v2/models/two/infer"
        got = server.post(path, {"inputs": [b, a], "outputs": [{"name": "z"}]})
        assert [o["name"] for o in got["outputs"]] == ["z"] and got["outputs"][0]["data"] == [-3], got
        cases = {
            "": "no JSON", "{": "no JSON", "[1, 2]": "a list of 2, not a JSON object", "{} {}": "no JSON", "\xff": "no JSON", "null": "not a JSON object",
            '{"inputs": [], "inputs": []}': 'the key "inputs" twice',
            '{"inputs": ' + "[" * 5000 + "]" * 5000 + "}": "nested deeper than 100",
            "[" * 19000: "nested deeper than 100",
        }
        for body, part in cases.items():
            assert part in server.error(path, body.encode("latin-1")), body[:40]
        cases = [
            ({}, 'no "inputs"'), ({"inputs": 1}, '"inputs" is 1'), ({"inputs": [1]}, "an input is 1"), ({"inputs": [{}]}, 'no "name"'),
            ({"inputs": [{"name": 5}]}, '"name" is 5'), ({"inputs": []}, "input 'a': it is missing; FP32 [?, 2] is expected"),
            ({"inputs": [a]}, "input 'b': it is missing"), ({"inputs": [a, b, a]}, "input 'a': it comes twice"),
            ({"inputs": [a, {**b, "name": "c"}]}, "has no input 'c'"),
            ({"inputs": [{**a, "datatype": "FP64"}, b]}, "input 'a': the datatype is FP64; FP32 is expected"),
            ({"inputs": [{**a, "datatype": "float"}, b]}, "'float' is none of the protocol's"),
            ({"inputs": [{**a, "datatype": 7}, b]}, '"datatype" is 7'),
            ({"inputs": [{**a, "shape": [2]}, b]}, "input 'a': the shape is [2]; [?, 2] is expected"),
            ({"inputs": [{**a, "shape": [2, 1]}, b]}, "the shape is [2, 1]; [?, 2] is expected"),
            ({"inputs": [{**a, "shape": [1, 3]}, b]}, "data has 2 values; shape [1, 3] needs 3"),
            ({"inputs": [{**a, "shape": [-1, 2]}, b]}, "shape has -1, which is no size"),
            ({"inputs": [{**a, "shape": [1.5, 2]}, b]}, "shape has 1.5"), ({"inputs": [{**a, "shape": ["1", 2]}, b]}, 'shape has "1"'),
            ({"inputs": [{**a, "shape": 2}, b]}, '"shape" is 2'),
            ({"inputs": [{**a, "shape": [2**62, 2**62, 4]}, b]}, "needs more than there can be"),
            ({"inputs": [{**a, "shape": [2**63]}, b]}, "which is no size"), ({"inputs": [{**a, "shape": [2**40, 2]}, b]}, "needs 2199023255552"),
            ({"inputs": [{**a, "shape": [0, 2**62, 2**62]}, b]}, "needs none"), ({"inputs": [{**a, "shape": [1] * 300}, b]}, "at most 254"),
            ({"inputs": [{**a, "data": [[1], [2]]}, b]}, "lists of 1 and of 2 values"), ({"inputs": [{**a, "data": [[1, 2], 3]}, b]}, "data has 3 values"),
            ({"inputs": [{**a, "data": [[1, [2]]]}, b]}, "not equally deep"), ({"inputs": [{**a, "data": 1}, b]}, "data is 1 where a list"),
            ({"inputs": [{"name": "a", "shape": [1, 2], "datatype": "FP32"}, b]}, "neither"),
            ({"inputs": [{**a, "parameters": {"binary_data_size": 8}}, b]}, "both"),
            ({"inputs": [{**a, "parameters": 1}, b]}, '"parameters" is 1'),
            ({"inputs": [a, b], "outputs": [{"name": "w"}]}, "no output 'w'; its outputs are 'y', 'z'"),
            ({"inputs": [a, b], "outputs": [{"name": "y"}, {"name": "y"}]}, "output 'y': it comes twice"),
            ({"inputs": [a, b], "outputs": [7]}, "an output is 7"),
            ({"inputs": [a, b], "outputs": [{"name": "y", "parameters": {"classification": 3}}]}, "classification"),
            ({"inputs": [a, b], "outputs": [{"name": "y", "parameters": {"binary_data": 3}}]}, '"binary_data" is 3'),
            ({"inputs": [a, b], "parameters": {"timeout": -1}}, '"timeout" is -1'),
            ({"inputs": [a, b], "parameters": {"signature_name": "other"}}, "other"),
        ]
        for request, part in cases:
            said = server.error(path, request)
            assert part in said, (request, said)
        sized = lambda n, dims: {"inputs": [{"name": "a", "shape": dims, "datatype": "FP32", "parameters": {"binary_data_size": n}}, b]}
        for n, dims, data, part in [(8, [1, 2], b"\0" * 7, "7 bytes are left"), (8, [1, 2], b"\0" * 9, "1 bytes behind the JSON belong to no input"),
                                    (4, [1, 2], b"\0" * 4, "has 4 bytes; FP32 [1, 2] needs 8"), (2**63, [1, 2], b"", "0 bytes are left"),
                                    (-8, [1, 2], b"", "is -8"), ("8", [1, 2], b"", 'is "8"'), (8, [2**62, 4], b"\0" * 8, "more than there can be")]:
            status, _, body = server.ask("POST", path, *binary(sized(n, dims), data))
            assert status == 400 and part in json.loads(body)["error"], (n, body)
        for length in ("-1", "x", "99999", "1x"):
            status, _, body = server.ask("POST", path, json.dumps({"inputs": [a, b]}), {"Inference-Header-Content-Length": length})
            assert status == 400 and "Inference-Header-Content-Length is" in json.loads(body)["error"], body
        # Addresses, methods and types.
        for method, address, status in [("POST", "/", 405), ("GET", "/v3", 404), ("GET", "/v2/models", 404), ("GET", "/v2/models/tow", 404),
                                        ("GET", "/v2/models/two/versions/2", 404), ("GET", "/v2/models/two/versions/01", 404),
                                        ("GET", "/v2/models/two/versions/1/config", 404), ("GET", "/v2/health/x", 404), ("GET", path, 405),
                                        ("PUT", path, 405), ("DELETE", "/v2/models/two", 405), ("POST", "/v2/models/two", 405),
                                        ("OPTIONS", path, 405), ("PATCH", path, 405), ("POST", "/v2/health/live", 405), ("POST", "/v2/models/x/infer", 404),
                                        ("GET", "/v2/models/%00%ff", 404), ("GET", "/v2/models/" + "a" * 2000, 414), ("GET", "/" + "a" * 9000, 414)]:
            got, _, body = server.ask(method, address, b"{}" if method in ("POST", "PUT", "PATCH") else None)
            assert got == status and json.loads(body)["error"], (method, address[:40], got, body)
        assert "did you mean 'two'?" in server.get("/v2/models/twoo", 404)["error"]
        for kind in ("text/html", "multipart/form-data; boundary=x", "application/xml"):
            assert "Content-Type" in server.error(path, {"inputs": [a, b]}, 415, {"Content-Type": kind})
        assert server.post(path, {"inputs": [a, b]}, headers={"Content-Type": "application/json; charset=utf-8"})
        assert "Content-Encoding" in server.error(path, "{}", 415, {"Content-Encoding": "zstd"})
        assert "the limit is 20000" in server.error(path, " " * 20001, 413)
        assert "too many values" in server.error(path, "[" + "{}," * 6000 + "{}]", 413)
        assert server.get("/v2/health/live") == {"live": True}  # after all of that


def test_bodies_come_packed_and_in_chunks(folder):
    request = json.dumps({"inputs": [tensor("x", "FP32", [1, 2], [1, 2])]}).encode()
    with Server(negative(f"{folder}/m.pb"), "--max-request-bytes", "100000") as server:
        for packing, body in [("gzip", gzip.compress(request)), ("deflate", zlib.compress(request)), ("identity", request)]:
            assert server.post("/v2/models/m/infer", body, headers={"Content-Encoding": packing})["outputs"][0]["data"] == [-1, -2], packing
        assert server.error("/v2/models/m/infer", gzip.compress(b" " * 50_000_000), 413, {"Content-Encoding": "gzip"})
        assert "Content-Encoding" in server.error("/v2/models/m/infer", b"not gzip", 400, {"Content-Encoding": "gzip"})
        status, headers, body = server.ask("POST", "/v2/models/m/infer", request, {"Accept-Encoding": "gzip"})
        assert status == 200 and json.loads(gzip.decompress(body) if headers["Content-Encoding"] == "gzip" else body)["outputs"]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (request[:10], request[10:])) + b"0\r\n\r\n"
        head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\n"
        with server.socket() as c:
            c.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
            assert answer_of(c)[0] == 200
            c.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n" % 200000 + b" " * 200000)
            assert answer_of(c)[0] == 413
        with server.socket() as c:  # Expect: the body is only asked for if it will be read
            c.sendall(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(request))
            assert c.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            c.sendall(request)
            assert answer_of(c)[0] == 200
        with server.socket() as c:
            c.sendall(head + b"Expect: 100-continue\r\nContent-Length: 200000\r\n\r\n")
            assert answer_of(c)[0] == 413


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


# ---- TensorFlow Serving's protocol ----

def two_inputs(path):
    """y = a + b and z = -b, for a [?, 2] and b [?, 2]."""
    return written(path, node("a", "Placeholder", dtype=FLOAT, shape=shape(-1, 2)) + node("b", "Placeholder", dtype=FLOAT, shape=shape(-1, 2)) +
                   node("y", "Add", "a", "b", T=FLOAT) + node("z", "Neg", "b", T=FLOAT))


def test_predictions_come_by_rows_and_by_columns(folder):
    negative(f"{folder}/negative/1/model.pb")
    two_inputs(f"{folder}/two/1/model.pb")
    identity(f"{folder}/text/1/model.pb", 7, -1)
    with Server("--models", folder, "--label", "two:stable=1") as server:
        one, two, text = ("/v1/models/negative:predict", "/v1/models/two/labels/stable:predict", "/v1/models/text/versions/1:predict")
        assert server.post(one, {"instances": [[1, 2], [3, 4]]}) == {"predictions": [[-1, -2], [-3, -4]]}
        assert server.post(one, {"instances": [{"x": [1, 2]}]}) == {"predictions": [[-1, -2]]}
        assert server.post(one, {"inputs": [[1, 2]]}) == server.post(one, {"inputs": {"x": [[1, 2]]}}) == {"outputs": [[-1, -2]]}
        assert server.post(one, {"inputs": []}) == {"outputs": []}  # [0, 2]
        assert server.post(one, {"signature_name": "serving_default", "inputs": [[1, 2]]}) == {"outputs": [[-1, -2]]}
        rows = {"instances": [{"a": [1, 2], "b": [10, 20]}, {"b": [30, 40], "a": [3, 4]}]}
        assert server.post(two, rows) == {"predictions": [{"y": [11, 22], "z": [-10, -20]}, {"y": [33, 44], "z": [-30, -40]}]}
        columns = {"inputs": {"a": [[1, 2]], "b": [[10, 20]]}}
        assert server.post(two, columns) == {"outputs": {"y": [[11, 22]], "z": [[-10, -20]]}}
        packed_text = base64.b64encode(b"\xff\0").decode()
        assert server.post(text, {"instances": ["a", {"b64": packed_text}]}) == {"predictions": ["a", {"b64": packed_text}]}
        for n in range(7):  # every padding
            word = base64.b64encode(bytes(range(250, 250 + min(n, 6)))).decode()
            assert server.post(text, {"inputs": [{"b64": word}]}) == {"outputs": [{"b64": word}] if n else [""]}, n
        # As curl sends it without being told the type.
        assert server.post(one, {"instances": [[1, 2]]}, headers={"Content-Type": "application/x-www-form-urlencoded"})


def test_status_and_metadata_are_as_tensorflow_serving_says_them(folder):
    with Server(two_inputs(f"{folder}/two.pb")) as server:
        available = {"model_version_status": [{"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]}
        assert server.get("/v1/models/two") == server.get("/v1/models/two/versions/1") == available
        about = server.get("/v1/models/two/metadata")
        assert about["model_spec"] == {"name": "two", "signature_name": "", "version": "1"}
        signature = about["metadata"]["signature_def"]["signature_def"]["serving_default"]
        dims = [{"size": "-1", "name": ""}, {"size": "2", "name": ""}]
        assert signature["inputs"]["a"] == {"dtype": "DT_FLOAT", "tensor_shape": {"dim": dims, "unknown_rank": False}, "name": "a:0"}, signature
        assert signature["outputs"].keys() == {"y", "z"} and signature["method_name"] == "tensorflow/serving/predict"
        path = "/v1/models/two:predict"
        row = {"a": [1, 2], "b": [1, 2]}
        for request, part in [({}, "neither"), ({"instances": [], "inputs": []}, "both"), ({"instances": []}, "at least one"), ({"instances": 1}, "is 1"),
                              ({"instances": [1]}, "2 inputs"), ({"inputs": 1}, "2 inputs"), ({"instances": [{"a": [1, 2]}]}, "input 'b': it is missing"),
                              ({"instances": [row, {"a": [1, 2]}]}, "instance 1 has 1 inputs"), ({"instances": [row, 1]}, "instance 1 is 1"),
                              ({"instances": [row, {**row, "c": 1}]}, "instance 1 has 3 inputs"),
                              ({"instances": [row, {"a": [1, 2], "c": 1}]}, "has no input 'c'"),
                              ({"instances": [{"a": [1, 2], "b": [1]}]}, "input 'b': the shape is [1, 1]; [?, 2] is expected"),
                              ({"instances": [row, {"a": [1], "b": [1, 2]}]}, "lists of 2 and of 1 values stand side by side"),
                              ({"instances": [{"a": ["x", 2], "b": [1, 2]}]}, 'value 0 is "x", which is no FP32'),
                              ({"inputs": {"a": [[1, 2]] * 2, "b": [[1, 2]] * 3}}, "Add"),
                              ({"inputs": {"a": [[1, 2]], "b": [[1, 2]]}, "signature_name": "none"}, "none"),
                              ({"inputs": {"a": [[1, 2]], "b": [[1, 2]]}, "signature_name": 1}, '"signature_name" is 1')]:
            said = server.error(path, request)
            assert part in said, (request, said)
        for method, address, status in [("POST", "/v1/models/two:classify", 501), ("POST", "/v1/models/two:regress", 501), ("POST", "/v1/models/two:run", 404),
                                        ("GET", path, 405), ("POST", "/v1/models/two", 405), ("POST", "/v1/models/other:predict", 404),
                                        ("GET", "/v1/models/two/versions/7", 404), ("GET", "/v1/models/two/labels/best", 404), ("GET", "/v1", 404),
                                        ("GET", "/v1/models/two/versions/1/x", 404)]:
            got, _, body = server.ask(method, address, b"{}" if method == "POST" else None)
            assert got == status and json.loads(body)["error"], (method, address, got, body)
        assert "'thalweg serve'" not in server.get("/v1/models/two/labels/best", 404)["error"]


# ---- Requests whose clients leave ----

PREDICT = b"POST /v1/models/%s:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"


def send(server, model, request):
    """Sends a request on a connection of its own and returns the connection."""
    body, connection = json.dumps(request).encode(), server.socket()
    connection.sendall(PREDICT % (model.encode(), len(body), body))
    return connection


def left(server, model):
    """Returns the number of requests whose client did not wait for the answer."""
    return server.metrics().get(f'thalweg_requests_total{{model="{model}",version="1",protocol="v1",code="499"}}', 0)


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


# ---- For those who serve a model for the first time ----

def run_command(server, line):
    """Sends what a command of the front page sends: `curl URL -d BODY`, or bytes of zero behind a header. Returns the answer."""
    words = shlex.split(line)
    url = next(w for w in words if w.startswith("http://"))
    assert url.startswith(f"http://127.0.0.1:{server.port}/"), line
    path = "/" + url.split("/", 3)[3]
    if words[0] == "curl":
        return server.post(path, words[words.index("-d") + 1])
    header, zeros = words[2].removesuffix(";"), int(words[words.index("-c") + 1])
    headers = dict(words[i + 1].split(": ") for i, w in enumerate(words) if w == "-H")
    return server.post(path, header.encode() + bytes(zeros), headers=headers)


def test_the_front_page_lists_models_with_a_request_for_each(folder):
    two_inputs(f"{folder}/two/3/model.pb")
    identity(f"{folder}/it's/1/model.pb", 7, -1)
    identity(f"{folder}/picture/1/model.pb", 1, -1, 3, 64, 64)
    identity(f"{folder}/complex/1/model.pb", 8, -1)
    written(f"{folder}/broken/1/model.pb", b"nonsense")
    with Server("--models", folder) as server:
        status, headers, body = server.ask("GET", "/")
        assert status == 200 and headers["Content-Type"].startswith("text/plain"), headers
        pages = {page.split("'", 1)[1].split("\n", 1)[0]: page.split("\n") for page in body.decode().split("\nmodel ")[1:]}
        assert len(pages) == 5, body
        assert pages["two', version 3"][1:5] == ["  input  a: FP32 [?, 2]", "  input  b: FP32 [?, 2]", "  output y: FP32 [?, 2]", "  output z: FP32 [?, 2]"]
        assert run_command(server, pages["two', version 3"][5]) == {"outputs": {"y": [[0, 0]], "z": [[0, 0]]}}
        assert run_command(server, pages["it's', version 1"][3]) == {"outputs": [""]}
        assert run_command(server, pages["picture', version 1"][3])["outputs"][0]["shape"] == [1, 3, 64, 64]
        assert "do not carry" in pages["complex', version 1"][3], body
        assert "not ready" in pages["broken'"][1], body
        for host in ("x y", "a';b", ""):  # such a host is not put into a command
            assert "//HOST:PORT/" in server.ask("GET", "/", headers={"Host": host})[2].decode()


def test_requests_have_ids_and_failures_of_the_server_are_logged(folder):
    gate(f"{folder}/gate")
    with Server(f"{folder}/gate") as server:
        ids = [server.ask("GET", "/v2")[1]["X-Request-Id"] for _ in range(2)] + [server.ask("GET", "/v2", headers={"X-Request-Id": "a b"})[1]["X-Request-Id"]]
        assert len(set(ids)) == 3 and all(ids) and "a b" not in ids, ids
        late = {"X-Request-Timeout-Ms": "20", "X-Request-Id": "late-17"}
        status, headers, _ = server.ask("POST", "/v1/models/gate:predict", json.dumps({"inputs": [1]}), late)
        assert status == 504 and headers["X-Request-Id"] == "late-17"
        assert server.error("/v1/models/gate:predict", {"inputs": ["x"]}, 400, {"X-Request-Id": "wrong-18"})  # the client's own fault
        said = server.stop()
    assert "POST /v1/models/gate:predict 504 " in said and "id=late-17: model 'gate'" in said and "wrong-18" not in said, said


def test_web_pages_use_the_server_only_if_their_origin_may(folder):
    model, path = negative(f"{folder}/m.pb"), "/v1/models/m:predict"
    mine, other = {"Origin": "https://a.example"}, {"Origin": "https://b.example"}
    with Server(model, "--allow-origin", mine["Origin"]) as server:
        status, headers, _ = server.ask("OPTIONS", path, headers={**mine, "Access-Control-Request-Method": "POST"})
        assert status == 200 and "POST" in headers["Access-Control-Allow-Methods"] and headers["Access-Control-Allow-Origin"] == mine["Origin"]
        status, headers, _ = server.ask("POST", path, '{"inputs": [[1, 2]]}', mine)
        assert status == 200 and headers["Access-Control-Allow-Origin"] == mine["Origin"] and headers["Vary"] == "Origin"
        status, headers, _ = server.ask("POST", path, "{", mine)  # the page may read errors too
        assert status == 400 and headers["Access-Control-Allow-Origin"] == mine["Origin"]
        for asked in (other, {}):
            status, headers, _ = server.ask("OPTIONS", path, headers=asked)
            assert status == 405 and "Access-Control-Allow-Origin" not in headers and headers["Vary"] == "Origin", asked
    with Server(model, "--allow-origin", "*") as server:
        assert server.ask("GET", "/v2", headers=other)[1]["Access-Control-Allow-Origin"] == "*"
    with Server(model) as server:
        assert "Access-Control-Allow-Origin" not in server.ask("GET", "/v2", headers=mine)[1]


# ---- Batches ----

def rows_of(metrics, model="m", version="1"):
    """Returns runs and rows so far."""
    labels = f'{{model="{model}",version="{version}"}}'
    return metrics.get("thalweg_batch_rows_count" + labels, 0), metrics.get("thalweg_batch_rows_sum" + labels, 0)


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
        # The time of a request ends its wait.
        said = server.error("/v1/models/m:predict", {"instances": [[1, 2]]}, 504, {"X-Request-Timeout-Ms": "1"})
        assert "time" in said, said
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


# ---- Limits and the end ----

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


def test_an_output_without_values_has_few_lists(folder):
    # y has the sizes x.
    written(f"{folder}/m.pb", node("x", "Placeholder", dtype=INT32, shape=shape(-1)) + constant("one", 1, [], struct.pack("<f", 1)) +
            node("y", "Fill", "x", "one", T=FLOAT))
    with Server(f"{folder}/m.pb") as server:
        assert server.post("/v1/models/m:predict", {"inputs": [2, 0]}) == {"outputs": [[], []]}
        for sizes in ([10**9, 0], [300, 300, 0], [2, 0, 10**9]):
            request = {"inputs": [tensor("x", "INT32", [len(sizes)], sizes)]}
            assert server.post("/v2/models/m/infer", request)["outputs"][0]["shape"] == sizes
        for sizes in ([10**9, 0], [300, 300, 0]):
            said = server.error("/v1/models/m:predict", {"inputs": sizes})
            assert "output 'y': its shape is [" in said and "ask for it by /v2" in said, said


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


def refuses(server):
    try:
        server.socket().close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it was waiting to be accepted
        return True
    return False


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
                            (("--models", folder, "--name", "x"), "--name"), ((model, "--name", "a/b"), "without '/'"), ((model, "--poll", "1"), "for --models"), ((model, "--polls", "1"), "did you mean '--poll'")]:
        assert part in run("serve", *arguments, status=2), arguments
    assert "nothing" in run("serve", f"{folder}/nothing.pb", status=1)
    assert "colour" in run("serve", model, "--session-option", "colour=red", status=1)
    assert "'/nowhere'" in run("serve", "--models", "/nowhere", status=1)
    assert "listen at 203.0.113.1:0" in run("serve", model, "--host", "203.0.113.1", "--port", "0", status=1)
    with Server(model) as server:
        taken = subprocess.run([str(THALWEG), "serve", str(model), "--port", str(server.port)], capture_output=True, text=True)
        assert taken.returncode == 1 and "Address already in use" in taken.stderr, taken
    with Server(model, "--name", "other name") as server:
        assert server.get("/v2/models/other%20name")["name"] == "other name"


sys.exit(run_tests(globals()))
