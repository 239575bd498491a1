"""Tests of `thalweg serve`: what requests and answers of both protocols say, and how wrong ones are refused."""
import base64
import gzip
import json
import math
import random
import shlex
import struct
import sys
import zlib

from thalweg_command import FLOAT, INT32, node, run_tests, shape
from thalweg_serve import Server, answer_of, ask_binary, binary, constant, gate, identity, negative, tensor, two_inputs, written

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
            "": "no JSON", "{": "no JSON", "[1, 2]": "a list of 2, not a JSON object", "{} {}": "no JSON", "\xff": "no JSON", "{}\0{}": "NUL byte", "null": "not a JSON object",
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
        for packing, body in [("gzip", gzip.compress(request)), ("GZip", gzip.compress(request)), ("deflate", zlib.compress(request)), ("identity", request)]:
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


def test_large_answers_are_packed_with_gzip_if_the_client_accepts_it(folder):
    with Server(identity(f"{folder}/m.pb", 1, -1)) as server:
        for n, accepts, packs in [(2000, "br, gzip", True), (2000, "GZIP;q=0.5", True), (2000, "br", False), (2000, "gzip;q=0, br", False), (3, "gzip", False)]:
            request = json.dumps({"inputs": [tensor("x", "FP32", [n], list(range(n)))]})
            status, headers, body = server.ask("POST", "/v2/models/m/infer", request, {"Accept-Encoding": accepts})
            assert status == 200 and headers["Content-Encoding"] == ("gzip" if packs else None), (accepts, headers)
            assert headers["Vary"] == ("Accept-Encoding" if n > 3 else None), headers
            assert json.loads(gzip.decompress(body) if packs else body)["outputs"][0]["data"] == list(range(n))


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


# ---- TensorFlow Serving's protocol ----

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


sys.exit(run_tests(globals()))
