"""Calls every function of bindings/libtensorflow/unserved.cc: one with a status fails with UNIMPLEMENTED and its name, one without writes its
name to the log, and both return zero.

usage: unserved_test.py LIBRARY        (libtensorflow.so.2 of the build tree)
"""
import ctypes
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "bindings/libtensorflow"
HEADERS = ["c_api.h", "c_api_experimental.h", "eager/c_api.h", "eager/c_api_experimental.h"]
UNIMPLEMENTED = 12
LISTENER = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class Value(ctypes.Structure):  # TF_Output and TF_Input
    _fields_ = [("oper", ctypes.c_void_p), ("index", ctypes.c_int)]


class Record(ctypes.Structure):  # a record that is passed in memory
    _fields_ = [("words", ctypes.c_void_p * 16)]


NUMBERS = {
    "int": ctypes.c_int, "unsigned int": ctypes.c_uint, "unsigned char": ctypes.c_ubyte, "size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64,
    "double": ctypes.c_double, "bool": ctypes.c_bool, "TF_DataType": ctypes.c_int, "TFE_CancellationToken": ctypes.c_int64
}
RECORDS = {"TF_Output": Value, "TF_Input": Value, "TFE_CustomDevice": Record, "TFE_CustomDeviceTensorHandle": Record}


def parameters(text):
    """Returns the parameters of a declaration, of which one may be a pointer to a function."""
    parts, depth = [""], 0
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def argument(parameter, status):
    """Returns the type and the value for one parameter: zero, or the status."""
    if "*" in parameter:
        return ctypes.c_void_p, status if parameter == "TF_Status* status" else None
    kind = NUMBERS.get(parameter) or RECORDS[parameter]
    return kind, kind() if parameter in RECORDS else kind(0)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.TF_NewStatus.restype = ctypes.c_void_p
    library.TF_Message.restype = ctypes.c_char_p
    status = ctypes.c_void_p(library.TF_NewStatus())
    lines = []
    listener = LISTENER(lambda text: lines.append(text.decode()))
    library.TF_RegisterLogListener(listener)
    found = re.findall(r"^(FAILS|WARNS)\(([^,]+), (\w+), \((.*)\)\)$", (SOURCE / "unserved.cc").read_text(), re.M)
    check(len(found) > 100, f"unserved.cc has {len(found)} functions in the expected form")
    for kind, result, name, text in found:
        function = getattr(library, name)
        arguments = [argument(p, status) for p in parameters(text)]
        function.argtypes = [a[0] for a in arguments]
        function.restype = None if result == "void" else ctypes.c_void_p if "*" in result else NUMBERS[result]
        library.TF_SetStatus(status, 0, b"")
        lines.clear()
        value = function(*[a[1] for a in arguments])
        check(not value, f"{name} returns {value}, not zero")
        if kind == "FAILS":
            code, message = library.TF_GetCode(status), library.TF_Message(status).decode()
            check(code == UNIMPLEMENTED and message.startswith(name + " is not served"), f"{name}: code {code}: {message}")
        else:
            check(any(name + " is not served" in line for line in lines), f"{name} writes no line with its name; the log has {lines}")
    library.TF_RegisterLogListener(None)
    declared = set()
    for header in HEADERS:
        declared |= set(re.findall(r"TF_CAPI_EXPORT[^;{}]*?\b(TFE?_\w+)\s*\(", (SOURCE / "include/tensorflow/c" / header).read_text()))
    missing = sorted(name for name in declared if not hasattr(library, name))
    check(not missing and len(declared) > 400, f"of {len(declared)} declared functions these are not exported: {missing}")
    served = len(declared) - len(found)
    print(f"{len(declared)} functions: {served} are served, {len(found)} say that they are not")


if __name__ == "__main__":
    main()
