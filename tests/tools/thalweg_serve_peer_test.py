"""`thalweg serve` and the clients of other systems: Triton's client and `requests`, unchanged. The results are ONNX Runtime's."""
import sys

import ml_dtypes
import numpy as np
import onnxruntime
import requests
import tritonclient.http as triton

from thalweg_command import FLOAT, node, run, run_tests, shape
from thalweg_serve import Server, constant, identity, written

odd = np.random.default_rng(7)
SIZES = (12, 32, 5)


def weights(name, *dims):
    return constant(name, 1, dims, odd.normal(size=dims).astype(np.float32).tobytes())


def net(folder):
    """Writes a net of two layers as an ONNX file."""
    graph = node("x", "Placeholder", dtype=FLOAT, shape=shape(-1, SIZES[0]))
    last = "x"
    for i, (n, m) in enumerate(zip(SIZES, SIZES[1:])):
        graph += weights(f"w{i}", n, m) + weights(f"b{i}", m)
        graph += node(f"p{i}", "MatMul", last, f"w{i}", T=FLOAT) + node(f"a{i}", "BiasAdd", f"p{i}", f"b{i}", T=FLOAT)
        last = f"h{i}"
        graph += node(last, "Relu" if i == 0 else "Softmax", f"a{i}", T=FLOAT)
    written(f"{folder}/net.pb", graph)
    run("convert", f"{folder}/net.pb", f"{folder}/net.onnx")
    return f"{folder}/net.onnx"


def test_clients_get_the_results_of_onnx_runtime(folder):
    file = net(folder)
    peer = onnxruntime.InferenceSession(file)
    x = odd.normal(size=(7, SIZES[0])).astype(np.float32)
    name_in, name_out = peer.get_inputs()[0].name, peer.get_outputs()[0].name
    want = peer.run([name_out], {name_in: x})[0]
    for arguments in ((), ("--max-batch", "16")):
        with Server(file, *arguments) as server:
            client = triton.InferenceServerClient(f"127.0.0.1:{server.port}", concurrency=4)
            assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("net") and client.is_model_ready("net", "1")
            assert not client.is_model_ready("other")
            assert client.get_server_metadata()["name"] == "thalweg"
            about = client.get_model_metadata("net")
            assert about["inputs"][0]["name"] == name_in and about["inputs"][0]["datatype"] == "FP32" and about["inputs"][0]["shape"][1] == SIZES[0], about
            for as_bytes in (True, False):
                given = triton.InferInput(name_in, x.shape, "FP32")
                given.set_data_from_numpy(x, binary_data=as_bytes)
                for back in (True, False):
                    for packing in (None, "gzip", "deflate"):
                        asked = triton.InferRequestedOutput(name_out, binary_data=back)
                        result = client.infer("net", [given], outputs=[asked], request_id="17", request_compression_algorithm=packing,
                                              response_compression_algorithm=packing, timeout=10_000_000)
                        np.testing.assert_allclose(result.as_numpy(name_out), want, rtol=1e-5, atol=1e-6)
                        assert result.get_response()["id"] == "17"
            without = client.infer("net", [given])
            np.testing.assert_allclose(without.as_numpy(name_out), want, rtol=1e-5, atol=1e-6)
            pending = [client.async_infer("net", [given]) for _ in range(16)]
            for one in pending:
                np.testing.assert_allclose(one.get_result().as_numpy(name_out), want, rtol=1e-5, atol=1e-6)
            try:
                client.infer("net", [triton.InferInput("wrong", [1], "FP32").set_data_from_numpy(np.zeros(1, np.float32))])
                raise AssertionError("no error came")
            except triton.InferenceServerException as e:
                assert "has no input 'wrong'" in e.message(), e
            client.close()
            for body, key in (({"instances": x.tolist()}, "predictions"), ({"inputs": {name_in: x.tolist()}}, "outputs")):
                answer = requests.post(f"http://127.0.0.1:{server.port}/v1/models/net:predict", json=body, timeout=60)
                np.testing.assert_allclose(np.float32(answer.json()[key]), want, rtol=1e-5, atol=1e-6)


def test_every_type_of_numpy_goes_there_and_back(folder):
    kinds = {"BOOL": 10, "UINT8": 4, "UINT16": 17, "UINT32": 22, "UINT64": 23, "INT8": 6, "INT16": 5, "INT32": 3, "INT64": 9, "FP16": 19,
             "FP32": 1, "FP64": 2, "BYTES": 7, "BF16": 14}
    for name, number in kinds.items():
        identity(f"{folder}/{name}/1/model.pb", number)
    with Server("--models", folder) as server:
        client = triton.InferenceServerClient(f"127.0.0.1:{server.port}")
        for name in kinds:
            if name == "BYTES":
                array = np.array([[b"", b"a\0"], ["\u00e4".encode(), b"\xff"]], dtype=np.object_)
            elif name == "BF16":
                array = np.array([[1.5, -2.0]], ml_dtypes.bfloat16)
            else:
                kind = np.dtype({"BOOL": "bool", "FP16": "f2", "FP32": "f4", "FP64": "f8"}.get(name, name.lower()))
                array = (odd.normal(size=(2, 3)) * 100).astype(kind)
            given = triton.InferInput("x", array.shape, name)
            given.set_data_from_numpy(array)
            got = client.infer(name, [given], outputs=[triton.InferRequestedOutput("y", binary_data=True)]).as_numpy("y")
            assert got.shape == array.shape and np.array_equal(got, array), (name, got)
        client.close()


sys.exit(run_tests(globals()))
