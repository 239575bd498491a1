"""Shared by the tests of `thalweg serve`: a server as a child process, clients, and models."""
import http.client
import json
import pathlib
import select
import signal
import socket
import subprocess
import threading
import time

from thalweg_command import FLOAT, THALWEG, dtype, field, node, shape

PATIENCE = 60  # seconds for what must happen; a test never waits for a time to pass


class Server:
    """`thalweg serve` at a free port. loading: returns once it answers, while its models are being loaded."""

    def __init__(self, *arguments, loading=False):
        command = [str(THALWEG), "serve", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.errors = []
        self.reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr))
        self.reader.start()
        if loading:
            until(lambda: self.process.poll() is not None or any(" answers; " in line for line in self.errors))
            line = next((line for line in self.errors if " answers; " in line), "it has ended: ")
            assert "http://127.0.0.1:" in line, f"{line}{''.join(self.errors)}"
            self.port = int(line.split("http://127.0.0.1:")[1].split()[0])
            return
        line = self.process.stdout.readline()
        if not line.startswith("listening at http://127.0.0.1:"):
            self.process.wait()
            self.reader.join()
            raise AssertionError(f"{line}{''.join(self.errors)}")
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.stop(check=kind is None)
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()

    def stop(self, check=True):
        """Ends the server as a service manager would. Returns what it wrote to standard error."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(check)

    def wait(self, check=True):
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.reader.join()
        assert not check or status == 0, f"exit status {status}: {''.join(self.errors)}"
        return "".join(self.errors)

    def socket(self):
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def ask(self, method, path, body=None, headers=None):
        """Returns status, headers and body of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path, status=200):
        got, _, body = self.ask("GET", path)
        assert got == status, (got, body)
        return json.loads(body)

    def post(self, path, request, status=200, headers=None):
        text = request if isinstance(request, (str, bytes)) else json.dumps(request)
        got, _, body = self.ask("POST", path, text, headers)
        assert got == status, (got, body)
        return json.loads(body)

    def error(self, path, request, status=400, headers=None):
        """Returns the text of the error that a request gets."""
        answer = self.post(path, request, status, headers)
        assert list(answer) == ["error"] and answer["error"], answer
        return answer["error"]

    def metrics(self):
        """Returns {series: value}."""
        status, headers, body = self.ask("GET", "/metrics")
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers
        lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def until(condition):
    """Asks until the condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come"
        time.sleep(0.01)


def received(connection):
    """Returns all bytes until the server closes the connection."""
    data = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return data
        if not part:
            return data
        data += part


def answer_of(connection):
    """Returns status and body of the next answer on a socket. Reads no byte behind it."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        assert byte, f"the connection ended after {head}"
        head += byte
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:-2])
    body = b""
    while len(body) < int(fields["Content-Length"]):
        part = connection.recv(int(fields["Content-Length"]) - len(body))
        assert part, "the connection ended within the answer"
        body += part
    return int(head.split()[1]), body


def is_quiet(connection):
    """Whether nothing has come so far."""
    return not select.select([connection], [], [], 0)[0]


def together(*calls):
    """Calls functions at the same time. Returns their results in order; raises the first failure."""
    results, failures = [None] * len(calls), []

    def one(i):
        try:
            results[i] = calls[i]()
        except BaseException as e:  # pylint: disable=broad-except
            failures.append(e)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


# ---- Requests ----

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


def send(server, model, request, **headers):
    """Sends a request on a connection of its own and returns the connection. headers: X_Y=VALUE for the header X-Y."""
    body, connection = json.dumps(request).encode(), server.socket()
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    connection.sendall(f"POST /v1/models/{model}:predict HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def left(server, model):
    """Returns the number of requests whose client did not wait for the answer."""
    return server.metrics().get(f'thalweg_requests_total{{model="{model}",version="1",protocol="v1",code="499"}}', 0)


def rows_of(metrics, model="m", version="1"):
    """Returns runs and rows so far."""
    labels = f'{{model="{model}",version="{version}"}}'
    return metrics.get("thalweg_batch_rows_count" + labels, 0), metrics.get("thalweg_batch_rows_sum" + labels, 0)


def refuses(server):
    try:
        server.socket().close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it was waiting to be accepted
        return True
    return False


# ---- Models ----

def written(path, message):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(message)
    return path


def negative(path, op="Neg"):
    """A frozen graph: y = -x for x [?, 2]."""
    return written(path, node("x", "Placeholder", dtype=FLOAT, shape=shape(-1, 2)) + node("y", op, "x", T=FLOAT))


def identity(path, number, *dims):
    """A frozen graph: y = x of one type; dims: of x, without them any."""
    sizes = {"shape": shape(*dims)} if dims else {}
    return written(path, node("x", "Placeholder", dtype=dtype(number), **sizes) + node("y", "Identity", "x", T=dtype(number)))


def constant(name, number, dims, data):
    """A node with a value: the number of its type, its dimensions and its bytes."""
    sizes = b"".join(field(2, field(1, d)) for d in dims)
    return node(name, "Const", dtype=dtype(number), value=field(8, field(1, number) + field(2, sizes) + field(4, data)))


def types(*numbers):
    """An attribute: a list of types."""
    return field(1, b"".join(field(6, n) for n in numbers))


def saved_model(folder, graph, signatures):
    """A SavedModel. signatures: {name: ({input: (tensor, type)}, {output: (tensor, type)})}; all tensors have the shape [1] of any size."""
    def info(tensor, number):
        return field(1, tensor) + field(2, number) + field(3, field(2, field(1, 2**64 - 1)))

    def side(number, values):
        return b"".join(field(number, field(1, name) + field(2, info(*value))) for name, value in values.items())

    meta = field(1, field(4, "serve")) + field(2, graph)
    for name, (inputs, outputs) in signatures.items():
        meta += field(5, field(1, name) + field(2, side(1, inputs) + side(2, outputs) + field(3, "tensorflow/serving/predict")))
    written(pathlib.Path(folder) / "saved_model.pb", field(1, 1) + field(2, meta))
    return folder


def gate(folder):
    """A SavedModel whose default signature waits for a value that the signature "put" brings: inputs and outputs [?]."""
    handle = dict(component_types=types(1), capacity=field(3, 100), shapes=field(1, b""))
    graph = (node("q", "FIFOQueueV2", **handle) +
             node("v", "Placeholder", dtype=FLOAT, shape=shape(-1)) +
             node("w", "Placeholder", dtype=FLOAT, shape=shape(-1)) +
             node("enqueue", "QueueEnqueueV2", "q", "v", Tcomponents=types(1)) +
             node("done", "Identity", "v", "^enqueue", T=FLOAT) +
             node("dequeue", "QueueDequeueV2", "q", component_types=types(1)) +
             node("sum", "Add", "dequeue", "w", T=FLOAT))
    return saved_model(folder, graph, {"serving_default": ({"w": ("w:0", 1)}, {"sum": ("sum:0", 1)}),
                                       "put": ({"v": ("v:0", 1)}, {"done": ("done:0", 1)})})


def two_inputs(path):
    """y = a + b and z = -b, for a [?, 2] and b [?, 2]."""
    return written(path, node("a", "Placeholder", dtype=FLOAT, shape=shape(-1, 2)) + node("b", "Placeholder", dtype=FLOAT, shape=shape(-1, 2)) +
                   node("y", "Add", "a", "b", T=FLOAT) + node("z", "Neg", "b", T=FLOAT))


def unending(folder):
    """A SavedModel whose loading does not end: its initialisation waits for a value that never comes."""
    handle = dict(component_types=types(1), capacity=field(3, 1), shapes=field(1, b""))
    graph = (node("never", "FIFOQueueV2", **handle) +
             node("wait", "QueueDequeueV2", "never", component_types=types(1)) +
             node("x", "Placeholder", dtype=FLOAT, shape=shape(-1)) +
             node("y", "Neg", "x", T=FLOAT))
    return saved_model(folder, graph, {"serving_default": ({"x": ("x:0", 1)}, {"y": ("y:0", 1)}),
                                       "__saved_model_init_op": ({}, {"__saved_model_init_op": ("wait:0", 1)})})
