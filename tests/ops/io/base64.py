import base64

from declare import expect, op, refuses
from text import TEXTS, each, text, texts

POOL = TEXTS + [bytes(range(k, k + n)) for k in (0, 97, 200) for n in (1, 2, 3, 4, 5, 6, 50)] + [b"\xff\xfe\xfd\xfb\xff"]


def encoded(t, pad=True):
    digits = base64.urlsafe_b64encode(t)
    return digits if pad else digits.rstrip(b"=")


op("EncodeBase64", lambda x, *, pad: each(lambda t: encoded(t, pad), x), lambda d: [texts(d, "input", POOL)])
op("DecodeBase64", lambda x: each(lambda t: base64.urlsafe_b64decode(t + b"=" * (-len(t) % 4)), x),
   lambda d: [texts(d, "input", [encoded(t, pad) for t in POOL for pad in (False, True)])])

expect("EncodeBase64", [text(b"", b"f", b"fo", b"foo", b"foob", b"fooba", b"foobar")],  # the vectors of RFC 4648
       [text(b"", b"Zg==", b"Zm8=", b"Zm9v", b"Zm9vYg==", b"Zm9vYmE=", b"Zm9vYmFy")], pad=True)
expect("DecodeBase64", [text(b"__79", b"YR", b"YWJ")], [text(b"\xff\xfe\xfd", b"a", b"ab")])  # bits after the last byte are ignored
for wrong in (b"Y", b"YWJjY", b"=", b"YWJj="):
    refuses("DecodeBase64", [text(b"YQ", wrong)], f"'input'[1] is '{wrong.decode()}'", "digits")
for wrong, digit in ((b"YQ=", "="), (b"//79", "/"), (b"++++", "+"), (b"YQ==YQ==", "="), (b"====", "="), (b"Y===", "="), (b"YW\nJ", r"\x0a"),
                     (b" YWJ", " "), (b"Y=Q=", "="), (b"\xff\xff\xff\xff", r"\xff"), (b"YQ=\0", "=")):
    refuses("DecodeBase64", [text(b"YQ", wrong)], "'input'[1] is '", f"with '{digit}'")
