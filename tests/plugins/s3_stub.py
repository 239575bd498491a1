"""An object store that speaks the part of S3 that plugins/s3 uses, in memory, for tests. It checks every signature with an
implementation of its own, and fails on demand. Names are in the path (http://host:port/bucket/key).

    with Store() as store:
        store.faults.append(once("PUT", "busy"))
        ... store.url, store.objects["bucket"]["key"].bytes, store.log

Threads: any; the faults are called by the threads that answer."""
import base64
import datetime
import hashlib
import hmac
import http.client
import http.server
import itertools
import random
import socket
import struct
import threading
import urllib.parse
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

KEY, SECRET, REGION = "AKIDTHALWEG", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-test-1"
LEAST_PART = 5 << 20
MARK = "x-amz-meta-thalweg-upload"


# ---- Signatures ----

def quoted(text, safe="-_.~"):
    return urllib.parse.quote(text, safe=safe)


def signature(method, path, query, headers, names, payload, secret, stamp, region):
    """Signature Version 4. path, query: as on the wire. headers: {lower-case name: value}. names: of the signed headers."""
    lines = "".join(f"{n}:{' '.join(headers[n].split())}\n" for n in names)
    canonical = "\n".join([method, path, query, lines, ";".join(names), payload])
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for word in scope.split("/"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Refused(Exception):
    def __init__(self, status, code, message="", extra=""):
        super().__init__(code)
        self.status, self.code, self.message, self.extra = status, code, message, extra


def check_signature(store, method, path, query, headers, body):
    given = headers.get("authorization")
    if not given:
        if store.public:
            return
        raise Refused(403, "AccessDenied", "no key")
    kind, _, rest = given.partition(" ")
    parts = dict(p.strip().split("=", 1) for p in rest.split(","))
    key, day, region, service, end = parts["Credential"].split("/")
    names, stamp = parts["SignedHeaders"].split(";"), headers["x-amz-date"]
    if (kind, service, end, day) != ("AWS4-HMAC-SHA256", "s3", "aws4_request", stamp[:8]) or names != sorted(names):
        raise Refused(400, "AuthorizationHeaderMalformed", "the header is malformed")
    if region != store.region:
        raise Refused(400, "AuthorizationHeaderMalformed", f"expecting '{store.region}'", f"<Region>{store.region}</Region>")
    if key not in store.keys:
        raise Refused(403, "InvalidAccessKeyId", "unknown key")
    unsigned = [n for n in headers if n.startswith("x-amz-") and n not in names]
    if "host" not in names or unsigned:
        raise Refused(403, "AccessDenied", f"headers are not signed: {unsigned}")
    if store.token is not None and headers.get("x-amz-security-token") != store.token:
        raise Refused(400, "InvalidToken", "the token is not the one of the key, " + headers.get("x-amz-security-token", ""))
    now = datetime.datetime.now(datetime.timezone.utc) + store.clock_ahead
    at = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if abs(now - at) > datetime.timedelta(minutes=15):
        raise Refused(403, "RequestTimeTooSkewed", "the difference is too large")
    if headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch", "the body was changed")
    wanted_path = quoted(urllib.parse.unquote(path), "/-_.~")
    wanted_query = "&".join(sorted(f"{quoted(k)}={quoted(v)}" for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True)))
    wanted = signature(method, wanted_path, wanted_query, headers, names, headers["x-amz-content-sha256"], store.keys[key], stamp, region)
    if not hmac.compare_digest(wanted, parts["Signature"]):
        raise Refused(403, "SignatureDoesNotMatch", "the signature differs")


# ---- Faults ----

FAULTS = ("busy", "internal", "gateway", "reset", "lost", "truncated", "cut")


def once(method, fault, key="", times=1):
    """A fault of the next `times` requests of a method whose key holds `key`."""
    left, lock = itertools.count(times, -1), threading.Lock()

    def find(request):
        with lock:
            return fault if request.method == method and key in request.key and next(left) > 0 else None
    return find


def always(method, fault, key=""):
    return lambda request: fault if request.method == method and key in request.key else None


def some(rate, seed, faults=FAULTS):
    """One of the faults in a share of all requests."""
    drawn, lock = random.Random(seed), threading.Lock()

    def find(request):
        with lock:
            return drawn.choice(faults) if drawn.random() < rate else None
    return find


# ---- The store ----

@dataclass
class Object:
    bytes: bytes
    tag: str
    mark: str = ""
    checksum: str = ""


@dataclass
class Upload:
    bucket: str
    key: str
    mark: str
    parts: dict = field(default_factory=dict)  # {number: bytes}


@dataclass
class Asked:
    method: str
    bucket: str
    key: str
    query: dict
    headers: dict
    body: bytes


class Store:
    """Bucket "bucket" is there. page: names in a page of a listing. public: requests need no key. log: (method, key, query) of every
    request. changed: notified when a request has come and when it is done."""

    def __init__(self, buckets=("bucket",)):
        self.objects, self.uploads = {b: {} for b in buckets}, {}
        self.keys, self.token, self.region, self.public = {KEY: SECRET}, None, REGION, False
        self.clock_ahead, self.page, self.conditional, self.checksums = datetime.timedelta(), 1000, True, True
        self.faults, self.log, self.mu = [], [], threading.RLock()
        self.changed = threading.Condition(self.mu)
        self.numbers = itertools.count(1)

        class Handler(_Handler):
            store = self

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, block_on_close, request_queue_size = True, False, 128

            def handle_error(self, *_):  # connections that tests break
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def wait(self, condition, seconds=60):
        """Waits for condition() to hold when a request has come or is done."""
        with self.changed:
            assert self.changed.wait_for(condition, seconds), "the store has not seen what the test waits for"

    def names(self, bucket="bucket"):
        with self.mu:
            return sorted(self.objects[bucket])

    def put(self, key, data, bucket="bucket"):
        with self.mu:
            self.objects[bucket][key] = Object(data, tag_of(data))

    def count(self, method, key=""):
        with self.mu:
            return sum(m == method and key in k for m, k, _ in self.log)


def tag_of(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    store: Store

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def _serve(self):
        store, body = self.store, self.rfile.read(int(self.headers.get("content-length", 0)))
        path, _, query = self.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        headers = {k.lower(): v for k, v in self.headers.items()}
        asked = Asked(self.command, bucket, key, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)), headers, body)
        with store.mu:
            fault = next((f for f in (find(asked) for find in store.faults) if f), None)
            store.log.append((asked.method, key, asked.query))
            store.changed.notify_all()
        try:
            if fault == "reset":
                return self._reset()
            if fault in REFUSALS:
                raise Refused(*REFUSALS[fault])
            check_signature(store, self.command, path, query, headers, body)
            with store.mu:
                status, given, answer = self._act(asked)
        except Refused as r:
            status, given = r.status, r.extra if isinstance(r.extra, dict) else {}
            extra = "" if isinstance(r.extra, dict) else r.extra
            answer = f"<?xml version='1.0'?>\n<Error><Code>{r.code}</Code><Message>{escape(r.message)}</Message>{extra}</Error>".encode()
        self._answer(status, given, answer, fault)
        with store.changed:
            store.changed.notify_all()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

    def _reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _answer(self, status, given, answer, fault):
        if fault == "lost":  # it was done, and nobody hears of it
            return self._reset()
        length = len(answer)
        if callable(fault):
            return fault(self, status, given, answer)
        if fault == "wrong_tag":
            given = {**given, "etag": '"00000000000000000000000000000000"'}
        if fault == "damaged" and answer:
            answer = bytes([answer[0] ^ 1]) + answer[1:]
        if fault == "cut":  # a shorter body that claims to be whole
            answer = answer[:length // 2]
            length = len(answer)
        self.send_response(status)
        for name, value in given.items():
            self.send_header(name, value)
        if "content-length" not in given:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "truncated":
            self.wfile.write(answer[:length // 2])
            return self._reset()
        self.wfile.write(answer)

    # ---- What is asked for ----

    def _act(self, a):
        if a.bucket not in self.store.objects:
            raise Refused(404, "NoSuchBucket", "the bucket does not exist")
        objects = self.store.objects[a.bucket]
        if a.method == "GET" and a.query.get("list-type") == "2":
            return self._list(objects, a)
        if a.method in ("GET", "HEAD"):
            return self._get(objects, a)
        if a.method == "DELETE" and "uploadId" in a.query:
            if not self.store.uploads.pop(a.query["uploadId"], None):
                raise Refused(404, "NoSuchUpload")
            return 204, {}, b""
        if a.method == "DELETE":
            objects.pop(a.key, None)
            return 204, {}, b""
        if a.method == "POST" and "uploads" in a.query:
            name = f"up/load+{next(self.store.numbers)}="
            self.store.uploads[name] = Upload(a.bucket, a.key, a.headers.get(MARK, ""))
            return 200, {}, self._xml("InitiateMultipartUploadResult", f"<UploadId>{name}</UploadId>")
        if a.method == "POST" and "uploadId" in a.query:
            return self._complete(objects, a)
        if a.method == "PUT" and "uploadId" in a.query:
            return self._part(a)
        if a.method == "PUT":
            return self._put(objects, a)
        raise Refused(405, "MethodNotAllowed")

    @staticmethod
    def _xml(name, inside):
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inside}</{name}>'.encode()

    def _get(self, objects, a):
        found = objects.get(a.key)
        if not found:
            raise Refused(404, "NoSuchKey", "the key does not exist")
        if a.headers.get("if-match", found.tag) != found.tag:
            raise Refused(412, "PreconditionFailed")
        given = {"etag": found.tag}
        if found.mark:
            given[MARK] = found.mark
        size = len(found.bytes)
        wanted = a.headers.get("range")
        if not wanted or a.method == "HEAD":
            return 200, {**given, "content-length": str(size)}, found.bytes
        first, last = (int(n) for n in wanted.removeprefix("bytes=").split("-"))
        if first >= size:
            raise Refused(416, "InvalidRange", "", {"content-range": f"bytes */{size}"})
        last = min(last, size - 1)
        given["content-range"] = f"bytes {first}-{last}/{size}"
        if self.store.checksums and found.checksum and a.headers.get("x-amz-checksum-mode") == "ENABLED":
            given["x-amz-checksum-sha256"] = found.checksum
        return 206, given, found.bytes[first:last + 1]

    def _must_be_new(self, objects, a):
        if self.store.conditional and a.headers.get("if-none-match") == "*" and a.key in objects:
            raise Refused(412, "PreconditionFailed")

    def _source(self, a):
        bucket, _, key = urllib.parse.unquote(a.headers["x-amz-copy-source"]).lstrip("/").partition("/")
        found = self.store.objects.get(bucket, {}).get(key)
        if not found:
            raise Refused(404, "NoSuchKey", "the source does not exist")
        if a.headers.get("x-amz-copy-source-if-match", found.tag) != found.tag:
            raise Refused(412, "PreconditionFailed")
        return found

    def _put(self, objects, a):
        if "x-amz-copy-source" in a.headers:
            found = self._source(a)
            objects[a.key] = Object(found.bytes, found.tag, found.mark, found.checksum)
            return 200, {}, self._xml("CopyObjectResult", f"<ETag>{escape(found.tag)}</ETag>")
        checksum = a.headers.get("x-amz-checksum-sha256", "")
        if checksum and base64.b64encode(hashlib.sha256(a.body).digest()).decode() != checksum:
            raise Refused(400, "BadDigest")
        self._must_be_new(objects, a)
        objects[a.key] = Object(a.body, tag_of(a.body), a.headers.get(MARK, ""), checksum)
        return 200, {"etag": tag_of(a.body)}, b""

    def _part(self, a):
        upload = self.store.uploads.get(a.query["uploadId"])
        if not upload or upload.key != a.key:
            raise Refused(404, "NoSuchUpload")
        body = a.body
        if "x-amz-copy-source" in a.headers:
            first, last = (int(n) for n in a.headers["x-amz-copy-source-range"].removeprefix("bytes=").split("-"))
            body = self._source(a).bytes[first:last + 1]
        upload.parts[int(a.query["partNumber"])] = body
        if "x-amz-copy-source" in a.headers:
            return 200, {}, self._xml("CopyPartResult", f"<ETag>{escape(tag_of(body))}</ETag>")
        return 200, {"etag": tag_of(body)}, b""

    def _complete(self, objects, a):
        upload = self.store.uploads.get(a.query["uploadId"])
        if not upload or upload.key != a.key:
            raise Refused(404, "NoSuchUpload")
        import xml.etree.ElementTree as tree
        space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
        listed = [(int(p.findtext(space + "PartNumber")), p.findtext(space + "ETag")) for p in tree.fromstring(a.body)]
        if [n for n, _ in listed] != list(range(1, len(listed) + 1)) or not listed:
            raise Refused(400, "InvalidPartOrder")
        parts = []
        for number, tag in listed:
            if number not in upload.parts or tag_of(upload.parts[number]) != tag:
                raise Refused(400, "InvalidPart", f"part {number}")
            parts.append(upload.parts[number])
        if any(len(p) < LEAST_PART for p in parts[:-1]):
            raise Refused(400, "EntityTooSmall")
        self._must_be_new(objects, a)
        whole = b"".join(parts)
        tag = f'"{hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest()}-{len(parts)}"'
        objects[a.key] = Object(whole, tag, upload.mark)
        del self.store.uploads[a.query["uploadId"]]
        # As S3 does when it works for long: blanks first.
        return 200, {}, b"  \n" + self._xml("CompleteMultipartUploadResult", f"<ETag>{escape(tag)}</ETag>")

    def _list(self, objects, a):
        prefix, delimiter = a.query.get("prefix", ""), a.query.get("delimiter", "")
        names = set()
        for key in objects:
            if key.startswith(prefix):
                cut = key.find(delimiter, len(prefix)) if delimiter else -1
                names.add(key if cut < 0 else key[:cut + 1])
        ordered = [n for n in sorted(names) if n > a.query.get("continuation-token", "")]
        shown, more = ordered[:self.store.page], len(ordered) > self.store.page
        code = quoted if a.query.get("encoding-type") == "url" else escape
        inside = "<EncodingType>url</EncodingType>" if a.query.get("encoding-type") == "url" else ""
        inside += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        if more:
            inside += f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>"
        for name in shown:
            if delimiter and name.endswith(delimiter) and name != prefix:
                inside += f"<CommonPrefixes><Prefix>{code(name)}</Prefix></CommonPrefixes>"
            else:
                inside += f"<Contents><Key>{code(name)}</Key><Size>{len(objects[name].bytes)}</Size></Contents>"
        return 200, {}, self._xml("ListBucketResult", inside)


REFUSALS = {
    "busy": (503, "SlowDown", "reduce your request rate"),
    "internal": (500, "InternalError", "we encountered an internal error"),
    "gateway": (502, "", ""),
    "denied": (403, "AccessDenied", "access denied"),
    "expired": (400, "ExpiredToken", "the token has expired"),
}


# ---- A client ----

class Raw:
    """Requests to a store, signed by this file's implementation."""

    def __init__(self, url, key=KEY, secret=SECRET, region=REGION):
        self.host, self.key, self.secret, self.region = url.removeprefix("http://"), key, secret, region

    def request(self, method, path, query=None, body=b"", **headers):
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        payload = hashlib.sha256(body).hexdigest()
        sent = {"host": self.host, "x-amz-content-sha256": payload, "x-amz-date": stamp, **{k.replace("_", "-"): v for k, v in headers.items()}}
        where = quoted(path, "/-_.~")
        asked = "&".join(sorted(f"{quoted(k)}={quoted(v)}" for k, v in (query or {}).items()))
        names = sorted(sent)
        sign = signature(method, where, asked, sent, names, payload, self.secret, stamp, self.region)
        sent["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.key}/{stamp[:8]}/{self.region}/s3/aws4_request, "
                                 f"SignedHeaders={';'.join(names)}, Signature={sign}")
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.request(method, where + ("?" + asked if asked else ""), body, sent)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def self_test():
    # Source: Amazon S3 API Reference, "Authenticating Requests: Using the Authorization Header", example GET Object.
    empty = hashlib.sha256(b"").hexdigest()
    headers = {"host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9", "x-amz-content-sha256": empty, "x-amz-date": "20130524T000000Z"}
    assert signature("GET", "/test.txt", "", headers, sorted(headers), empty, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524T000000Z",
                     "us-east-1") == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    with Store() as store:
        raw = Raw(store.url)
        assert raw.request("PUT", "/bucket/a b+ü", body=b"0123456789")[0] == 200 and store.names() == ["a b+ü"]
        assert raw.request("GET", "/bucket/a b+ü", range="bytes=2-4") == (206, b"234")
        assert raw.request("GET", "/bucket", {"list-type": "2", "prefix": "a"})[0] == 200
        assert Raw(store.url, secret="x").request("GET", "/bucket/a")[0] == 403
        store.faults.append(once("GET", "busy"))
        assert [raw.request("GET", "/bucket/a b+ü")[0] for _ in range(2)] == [503, 200]


if __name__ == "__main__":
    self_test()
    print("the stub keeps its word")
