"""Files at s3:// through the Python binding, at a store in this process that checks signatures and fails on demand (s3_stub.py)."""
import datetime
import gc
import os
import signal
import socket
import subprocess
import threading

import numpy as np
import pytest

import s3_stub
from s3_stub import KEY, REGION, SECRET, Store, always, once, some

STORE = Store()
import s3_cases  # noqa: E402

s3_cases.use(STORE.url, KEY, SECRET, REGION)
import thalweg as tw  # noqa: E402
from s3_cases import CASES, PART, Model, op, options  # noqa: E402


@pytest.fixture
def store():
    with STORE.mu:
        STORE.objects, STORE.uploads = {"bucket": {}}, {}
        STORE.faults, STORE.log = [], []
        STORE.page, STORE.token, STORE.public, STORE.conditional = 1000, None, False, True
        STORE.clock_ahead = datetime.timedelta()
    return STORE


def runtime(store, **more):
    """A runtime of its own with options of the plugin."""
    return tw.Runtime(**options(endpoint=store.url, **more))


def loaded(**settings):
    """Loads the plugin by name with settings, so that its own error is raised."""
    library = os.path.join(os.environ["THALWEG_PLUGIN_PATH"].split(":")[0], "libs3.so")
    tw.Runtime(load_plugins=False, **options(**settings)).load_plugin(library)


def write(name, value, where=None):
    tw.write_checkpoint(f"s3://bucket/{name}", {"v": np.asarray(value)}, where)


def read(name, where=None):
    with tw.Checkpoint(f"s3://bucket/{name}", where) as c:
        return c["v"]


# ---- What every store must do ----

@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_a_store_in_order(store, case):
    case("s3://bucket/case")
    assert not store.uploads, "an upload was neither completed nor aborted"
    assert not [name for name in store.names() if ".tmp-" in name]


@pytest.mark.parametrize("seed", range(3))
def test_a_third_of_the_requests_fails_and_the_bytes_are_the_same(store, seed):
    drawn = np.random.default_rng(seed)
    value, lines = drawn.integers(0, 1 << 30, 3 * PART // 4 + 5, dtype=np.int32), [drawn.bytes(70_000) for _ in range(40)]
    store.faults = [some(0.3, seed)]
    write("m", value)
    with tw.data.RecordWriter("s3://bucket/r") as w:
        for line in lines:
            w.write(line)
    np.testing.assert_array_equal(read("m"), value)
    assert s3_cases.bytes_of(tw.data.records(["s3://bucket/r"])) == lines
    store.faults = []
    np.testing.assert_array_equal(read("m"), value)
    assert store.names() == ["m.data-00000-of-00001", "m.index", "r"]


# ---- Writing ----

def test_a_large_file_goes_up_in_parts_and_a_small_one_by_one_request(store):
    write("small", np.zeros(10))
    assert not [q for m, _, q in store.log if "uploads" in q]
    with tw.data.RecordWriter("s3://bucket/large") as w:
        w.write(bytes(2 * PART))
    parts = [int(q["partNumber"]) for m, k, q in store.log if m == "PUT" and "large" in k and "partNumber" in q]
    assert sorted(parts) == [1, 2, 3] and not store.uploads


def test_a_failed_part_aborts_the_upload_and_no_file_appears(store):
    store.faults = [always("PUT", "denied", "large")]
    with pytest.raises(tw.PermissionDeniedError, match="AccessDenied") as e:
        with tw.data.RecordWriter("s3://bucket/large") as w:
            w.write(bytes(3 * PART))
    assert "PUT http://127.0.0.1" in str(e.value) and SECRET not in str(e.value)
    del w, e
    gc.collect()  # the traceback holds the writer
    assert not store.uploads and store.names() == []


def test_a_part_with_a_wrong_tag_is_no_file(store):
    store.faults = [once("PUT", "wrong_tag", "large")]
    with pytest.raises(tw.DataLossError, match="InvalidPart"):
        with tw.data.RecordWriter("s3://bucket/large") as w:
            w.write(bytes(3 * PART))
    del w
    gc.collect()
    assert not store.uploads and store.names() == []


@pytest.mark.parametrize("at", ["data", "index", "checkpoint"])
def test_a_lost_answer_to_a_write_is_no_second_write(store, at):
    model = Model()
    store.faults = [once("PUT", "lost", at), once("PUT", "lost", at)]
    with tw.Checkpointer(model.session, "s3://bucket/run", model.saver) as c:
        c.save(1)
    assert tw.latest_checkpoint("s3://bucket/run") == "s3://bucket/run/model.ckpt-1"
    np.testing.assert_array_equal(tw.Checkpoint("s3://bucket/run/model.ckpt-1")["w"], model.value())


def test_a_lost_answer_to_the_completion_of_an_upload(store):
    store.faults = [once("POST", lambda handler, status, given, answer: handler._reset() if b"Complete" in answer else
                         handler._answer(status, given, answer, None), times=2)]
    with tw.data.RecordWriter("s3://bucket/large") as w:
        w.write(bytes(2 * PART))
    assert store.names() == ["large"] and not store.uploads


@pytest.mark.parametrize("n", range(1, 4))
def test_a_save_whose_copies_have_no_answer_leaves_a_whole_checkpoint(store, n):
    """From copy number n on, copies are made and their answers are lost, and nobody can look either."""
    where = runtime(store, **({"patience_ms": 100} if n <= 2 else {}))  # a request that may succeed has time
    write("m", [1, 1])
    seen, lock = [0], threading.Lock()

    def fault(request):
        with lock:
            if "x-amz-copy-source" in request.headers:
                seen[0] += 1
                return "lost" if seen[0] >= n else None
            return "reset" if seen[0] >= n else None

    store.faults = [fault]
    failed = False
    try:
        write("m", [2, 2], where)
    except tw.UnavailableError:
        failed = True
    store.faults = []
    assert failed == (n <= 2)  # one data file and the index
    assert list(read("m")) in ([1, 1], [2, 2])
    write("m", [3, 3])
    assert list(read("m")) == [3, 3]


def test_a_copy_whose_answer_is_lost_before_the_store_refuses(store):
    """The copy of the index is made and its answer is lost; then the key may do nothing any more."""
    write("m", [1, 1])
    lost = []

    def fault(request):
        if "x-amz-copy-source" in request.headers and "index" in request.key and not lost:
            lost.append(request)
            return "lost"
        return "denied" if lost else None

    store.faults = [fault]
    with pytest.raises(tw.UnavailableError, match="AccessDenied.*may have taken effect"):
        write("m", [2, 2])
    store.faults = []
    assert list(read("m")) == [2, 2]


def test_a_completion_whose_answer_is_lost_before_the_store_refuses(store):
    """The upload is completed and the answer is lost; then the key may do nothing any more."""
    lost = []

    def fault(request):
        if request.method == "POST" and "uploadId" in request.query and not lost:
            lost.append(request)
            return "lost"
        return "denied" if lost else None

    store.faults = [fault]
    with pytest.raises(tw.UnavailableError, match="AccessDenied.*may have taken effect"):
        with tw.data.RecordWriter("s3://bucket/large") as w:
            w.write(bytes(2 * PART))
    del w
    gc.collect()  # the traceback holds the writer, whose abort is refused
    store.faults = []
    [name] = store.names()  # it is complete, and was not renamed
    assert name.startswith("large.") and ".tmp-" in name and not store.uploads


def test_a_killed_process_leaves_the_old_checkpoint_and_no_part_of_a_new_one(store):
    model = Model(4 * PART)
    with tw.Checkpointer(model.session, "s3://bucket/run", model.saver) as c:
        c.save(1)
    before = store.names()
    held, go_on = threading.Event(), threading.Event()

    def hold(handler, status, given, answer):  # the third part waits until the process is dead
        held.set()
        with store.changed:
            store.changed.notify_all()
        go_on.wait(60)

    store.faults = [lambda r: hold if r.query.get("partNumber") == "3" else None]
    process = s3_cases.start_a_save("s3://bucket/run")
    try:
        store.wait(lambda: held.is_set() or process.poll() is not None)  # the log has the parts of the first save, too
        assert process.poll() is None, "it ended by itself"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        go_on.set()
    store.faults = []
    assert store.names() == before and store.uploads, "the upload was not under way"
    assert tw.latest_checkpoint("s3://bucket/run") == "s3://bucket/run/model.ckpt-1"
    other = Model(4 * PART)
    with tw.Checkpointer(other.session, "s3://bucket/run", other.saver) as c:
        assert c.restore() == 1
        c.save(2)
    assert tw.latest_checkpoint("s3://bucket/run") == "s3://bucket/run/model.ckpt-2"


def test_a_name_that_is_taken_meanwhile(store):
    """Another process makes an object of the name between the creation of a file and its first flush."""
    w = tw.SummaryWriter("s3://bucket/run", flush_seconds=1000)
    key = w.path.removeprefix("s3://bucket/")
    store.put(key, b"somebody else's")
    w.scalar("loss", 1.0, 0)
    with pytest.raises(tw.AlreadyExistsError, match="there is an object of that name"):
        w.close()
    assert store.objects["bucket"][key].bytes == b"somebody else's"


def test_a_file_that_grows_after_a_flush_of_several_parts(store):
    with tw.SummaryWriter("s3://bucket/run", flush_seconds=1000) as w:
        for step in range(3):
            w.text("t", chr(97 + step) * (PART + 1000), step)
            w.flush()
            seen = store.objects["bucket"][w.path.removeprefix("s3://bucket/")].bytes
            assert chr(97 + step).encode() * (PART + 1000) in seen and len(seen) > (step + 1) * PART
    assert not store.uploads


def test_an_upload_that_somebody_aborts_is_no_success(store):
    """A rule of the bucket removes the parts while the file grows; the object of the first flush has the same writer."""
    w = tw.SummaryWriter("s3://bucket/run", flush_seconds=1000)
    w.text("t", "a" * (PART + 1000), 0)
    w.flush()
    store.faults = [lambda r: store.uploads.clear() if r.method == "POST" and "uploadId" in r.query else None]
    w.text("t", "b" * (PART + 1000), 1)
    with pytest.raises(tw.AbortedError, match="aborted the upload"):
        w.close()


# ---- Reading ----

def test_sequential_reads_are_few_requests_and_single_ones_small(store):
    records = [bytes([i % 256]) * 1000 for i in range(8000)]
    with tw.data.RecordWriter("s3://bucket/r") as w:
        for record in records:
            w.write(record)
    store.log.clear()
    assert s3_cases.bytes_of(tw.data.records(["s3://bucket/r"])) == records
    assert store.count("GET", "r") < 12
    tw.write_checkpoint("s3://bucket/m", {f"v{i}": np.full(100_000, i) for i in range(20)})
    sizes = []
    store.faults = [lambda r: sizes.append(r.headers.get("range")) if "data" in r.key else None]
    assert tw.Checkpoint("s3://bucket/m")["v7"][0] == 7
    asked = sum(int(last) + 1 - int(first) for first, last in (s.removeprefix("bytes=").split("-") for s in sizes))
    assert asked < 1_500_000, sizes


def test_an_index_is_read_once(store):
    # The runtime opens it again to see that it was not replaced meanwhile; its ETag says so without another read.
    tw.write_checkpoint("s3://bucket/m", {f"v{i:05}": np.float32(i) for i in range(20_000)})
    size = len(store.objects["bucket"]["m.index"].bytes)
    assert size > 300_000
    ranges = []
    store.faults = [lambda r: ranges.append(r.headers.get("range")) if "index" in r.key else None]
    assert tw.Checkpoint("s3://bucket/m")["v00007"] == 7
    asked = sum(int(last) + 1 - int(first) for first, last in (r.removeprefix("bytes=").split("-") for r in ranges))
    assert asked < 1.7 * size, ranges


def test_a_listing_has_pages_and_keys_that_are_no_names(store):
    store.page = 3
    for key in ("d/a", "d/b", "d/c/x", "d/c/y", "d/d&<e>", "d/", "d//z", "d/f", "other"):
        store.put(key, b"1")
    found = {n.decode().removeprefix("s3://bucket/d/") for n in op("matching_files", "s3://bucket/d/*").tolist()}
    assert found - {"c"} == {"a", "b", "d&<e>", "f"}  # c is a folder
    assert store.count("GET") >= 2


def test_an_object_that_is_replaced_while_it_is_open(store):
    write("m", np.arange(300_000))
    with tw.Checkpoint("s3://bucket/m") as c:
        data = next(k for k in store.names() if "data" in k)
        store.put(data, bytes(len(store.objects["bucket"][data].bytes)))
        with pytest.raises(tw.DataLossError, match="was replaced or removed since it was opened"):
            c["v"]


def test_another_tag_than_at_the_opening(store):
    write("m", np.arange(300_000))
    with tw.Checkpoint("s3://bucket/m") as c:
        store.faults = [always("GET", "wrong_tag", "data")]
        with pytest.raises(tw.DataLossError, match="was replaced"):
            c["v"]


def test_damaged_bytes_are_read_again(store):
    op("write_file", "s3://bucket/x", b"some bytes")
    store.faults = [once("GET", "damaged", "x")]
    assert op("read_file", "s3://bucket/x").item() == b"some bytes"
    assert store.count("GET", "x") >= 2


# ---- Hostile stores ----

def many_headers(handler, status, given, answer):
    handler.send_response(status)
    for i in range(100):
        handler.send_header(f"x-many-{i}", "y" * 1000)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def endless(handler, status, given, answer):
    handler.send_response(status)
    handler.send_header("Transfer-Encoding", "chunked")
    for name, value in given.items():
        handler.send_header(name, value)
    handler.end_headers()
    block = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    try:
        for _ in range(2000):
            handler.wfile.write(block)
    except OSError:
        pass
    handler.close_connection = True


def answers(body):
    def send(handler, status, given, answer):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return send


BOMB = b"""<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">]>
<ListBucketResult><Contents><Key>&c;</Key></Contents></ListBucketResult>"""
STRANGE = b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken></ListBucketResult>"


@pytest.mark.parametrize("body, said", [
    (BOMB, "declares a document type"), (b"<a>" * 1000, "nested too deeply"), (b"<ListBucketResult>" + b"<a/>" * 30_000, "too many elements"),
    (b"{}", "XML is refused"), (b"", "XML is refused"), (b"<Other/>", "<Other> where <ListBucketResult> belongs"), (STRANGE, "does not end"),
    (b"<ListBucketResult><Contents><Key>elsewhere</Key></Contents></ListBucketResult>", "do not begin with"),
    (b"<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>d/%4</Key></Contents></ListBucketResult>", "percent-encoded"),
], ids=["bomb", "deep", "many", "json", "empty", "other", "endless pages", "foreign keys", "half a character"])
def test_a_listing_that_is_none(store, body, said):
    store.faults = [always("GET", answers(body))]
    with pytest.raises(tw.DataLossError, match=said):
        tw.latest_checkpoint("s3://bucket/d", runtime(store))


@pytest.mark.parametrize("fault, said", [(many_headers, "64 KiB of headers"), (endless, "more bytes than were asked for")])
def test_an_answer_without_bounds(store, fault, said):
    op("write_file", "s3://bucket/x", b"some bytes")
    store.faults = [always("GET", fault)]
    with pytest.raises(tw.DataLossError, match=said):
        op("read_file", "s3://bucket/x")


def test_an_endless_error(store):
    store.faults = [always("GET", lambda handler, *_: endless(handler, 403, {}, b""))]
    with pytest.raises(tw.DataLossError, match="too long"):
        op("read_file", "s3://bucket/x")


@pytest.mark.parametrize("fault", ["cut", "truncated"])
def test_an_answer_that_is_never_whole(store, fault):
    write("m", [1])
    store.faults = [always("GET", fault)]
    with pytest.raises(tw.DataLossError if fault == "cut" else tw.UnavailableError, match="attempt [0-9]+"):
        read("m", runtime(store, patience_ms=1000))


def test_an_answer_without_a_length_or_with_another_status(store):
    """Bytes up to the end of a connection may have been cut off; a portal may answer 204 to everything."""
    def unbounded(handler, status, given, answer):
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(answer[:3])

    def portal(handler, status, given, answer):
        handler.send_response(204)
        handler.end_headers()

    op("write_file", "s3://bucket/x", b"some bytes")
    for fault, said in ((unbounded, "does not say how long it is"), (portal, "the status 204")):
        store.faults = [always("GET", fault)]
        with pytest.raises(tw.DataLossError, match=said + ".*attempt 5,"):
            op("read_file", "s3://bucket/x")


# ---- Errors ----

def error_of(store, wanted, **more):
    with pytest.raises(wanted) as e:
        read("m", runtime(store, **more))
    text = str(e.value)
    assert SECRET not in text and "Signature=" not in text and "token-that-is-secret" not in text
    return text


def test_errors_say_what_to_do(store, monkeypatch):
    def with_environment(wanted, region=REGION, **variables):
        with monkeypatch.context() as m:
            for name, value in variables.items():
                m.setenv(name, value)
            return error_of(store, wanted, region=region)

    assert "check the secret key" in with_environment(tw.UnauthenticatedError, AWS_SECRET_ACCESS_KEY="wrong")
    assert "does not know the key" in with_environment(tw.UnauthenticatedError, AWS_ACCESS_KEY_ID="AKIDNOBODY")
    assert f"in the region '{REGION}'" in with_environment(tw.FailedPreconditionError, region="us-west-9")
    store.clock_ahead = datetime.timedelta(hours=1)
    assert "the clock of this machine differs" in with_environment(tw.FailedPreconditionError)
    store.clock_ahead, store.token = datetime.timedelta(), "another"
    text = with_environment(tw.UnauthenticatedError, AWS_SESSION_TOKEN="token-that-is-secret")
    assert "session token does not belong" in text
    store.token = None
    store.faults = [always("GET", "denied")]
    assert "s3:ListBucket" in error_of(store, tw.PermissionDeniedError)
    store.faults = [always("GET", "busy")]
    text = error_of(store, tw.UnavailableError, patience_ms=1000)
    assert "SlowDown" in text and "attempt" in text and "patience_ms" in text


def test_a_session_token_is_sent_and_signed(store, monkeypatch):
    store.token = "a+token/with="
    monkeypatch.setenv("AWS_SESSION_TOKEN", store.token)
    write("m", [1], runtime(store))
    assert store.names()


def test_an_expired_key_is_replaced_from_the_file(store, tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    file = tmp_path / "credentials"

    def fill(secret):
        file.write_text(f"[default]\naws_access_key_id = nobody\n\n[team]\naws_access_key_id = {KEY}\naws_secret_access_key={secret}\n")
        file.chmod(0o600)

    fill("expired")
    where = runtime(store, credentials=str(file), profile="team")
    with pytest.raises(tw.UnauthenticatedError, match="profile 'team' of"):
        write("m", [1], where)
    fill(SECRET)
    write("m", [1], where)
    file.chmod(0o622)
    with pytest.raises(tw.InvalidArgumentError, match="can be changed by others"):
        write("n", [1], runtime(store, credentials=str(file), profile="team"))


def test_keys_of_a_container(store, monkeypatch):
    import http.server
    expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=4)  # so each request would like another one
    looks = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            looks.append(self.path)
            good = self.path == "/keys?role=a" and self.headers["authorization"] == "bearer"
            body = f'{{"AccessKeyId": "{KEY}", "SecretAccessKey": "{SECRET}", "Expiration": "{expires:%Y-%m-%dT%H:%M:%SZ}"}}'.encode()
            self.send_response(200 if good else 403)
            self.end_headers()
            self.wfile.write(body if good else b"")

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", "/nonexistent")
        with pytest.raises(tw.UnauthenticatedError, match="there is no key for the store; looked at AWS_ACCESS_KEY_ID"):
            write("m", [1], runtime(store))
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{server.server_port}/keys?role=a")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "bearer")
        store.log.clear()
        write("m", [1], runtime(store))
        assert len(looks) < len(store.log) / 2, "nearly each request fetches a key"
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/keys")
        with pytest.raises(tw.UnauthenticatedError, match="without encryption"):
            write("n", [1], runtime(store))
    finally:
        server.shutdown()
        server.server_close()


def test_a_public_bucket_needs_no_key(store):
    write("m", [4])
    store.public = True
    assert list(read("m", runtime(store, anonymous=1))) == [4]


# ---- Settings ----

@pytest.mark.parametrize("settings, said", [
    ({"part_bytes": 1}, "setting 'part_bytes' is '1'; give a number from 5242880"), ({"style": "round"}, "give auto, path or virtual"),
    ({"endpoint": "store:9000"}, "give https://host"), ({"anonymous": "yes"}, "give 0 or 1")])
def test_a_wrong_setting_is_refused_when_the_plugin_is_loaded(settings, said):
    with pytest.raises(tw.Error) as e:
        loaded(**settings)
    assert said in str(e.value)


@pytest.mark.parametrize("path, said", [
    ("s3://Bucket/x", "names the bucket 'Bucket'"), ("s3://b/x", "names the bucket 'b'"), ("s3://bucket/a/../x", "has '..' in it"),
    ("s3://bucket/./x", "has '.' in it"), ("s3://bucket/" + "k" * 1100, "S3 allows 1024"), ("s3://bucket", "names no object")])
def test_a_path_that_is_none(store, path, said):
    with pytest.raises(tw.InvalidArgumentError) as e:
        op("read_file", path)
    assert said in str(e.value) and not store.log


def test_keys_travel_in_plain_text_only_within_the_machine(store):
    where = tw.Runtime(**options(endpoint="http://192.0.2.1:9000"))
    with pytest.raises(tw.FailedPreconditionError, match="plain_http=1"):
        read("m", where)
    with pytest.raises(tw.Error) as e:
        loaded(endpoint="https://user:password@host")
    assert "user name" in str(e.value) and "password@" not in str(e.value)


def test_a_store_that_is_not_there_is_given_up_soon():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        where = tw.Runtime(**options(endpoint=f"http://127.0.0.1:{taken.getsockname()[1]}"))
        with pytest.raises(tw.UnavailableError, match="attempt 5, .*check the endpoint"):
            read("m", where)


def test_certificates_are_verified(store, tmp_path):
    """A store behind TLS with a certificate of its own: refused, and accepted with the setting `ca`."""
    import ssl
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                           "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], capture_output=True)
    if made.returncode:
        pytest.skip("the command openssl makes no certificate here")
    with Store() as other:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        other.server.socket = context.wrap_socket(other.server.socket, server_side=True)
        url = f"https://localhost:{other.server.server_port}"
        with pytest.raises(tw.UnauthenticatedError, match="plugin.org.thalweg.s3.ca"):
            read("m", tw.Runtime(**options(endpoint=url)))
        where = tw.Runtime(**options(endpoint=url, ca=str(cert)))
        write("m", [7], where)
        assert list(read("m", where)) == [7]


# ---- Processes and threads ----

def test_a_forked_child_reads_and_writes(store):
    write("m", np.arange(10))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if list(read("m")) == list(range(10)):
                write("child", [5])
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list(read("child")) == [5] and list(read("m")) == list(range(10))


def test_threads_share_the_store(store):
    wrong = []

    def work(i):
        try:
            value = np.random.default_rng(i).integers(0, 100, 400_000)
            write(f"t{i}", value)
            assert (read(f"t{i}") == value).all()
        except Exception as e:  # noqa: BLE001: told below
            wrong.append(e)

    store.faults = [some(0.1, 9)]
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
