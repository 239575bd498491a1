"""What `tw.save` and `thalweg convert` write, read by others: TensorFlow reads our SavedModels by tf.saved_model.load and by its C API, ONNX Runtime
our ONNX files, and both answer what our session answered, within 1e-5 of the largest element. Runs under tools/cmake/peer-python."""
import ctypes
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
BUILD = pathlib.Path(os.environ.get("THALWEG_BINARY_DIR", ROOT / "build/release"))
sys.path += [str(BUILD / "python"), str(pathlib.Path(__file__).parent)]
for needed in ("tensorflow", "onnxruntime"):
    if importlib.util.find_spec(needed) is None:
        print(f"skipped: there is no {needed}; run tools/setup --peers")
        sys.exit(77)

import numpy as np

import written_models


def by_saved_model_load(folder, fed):
    import tensorflow as tf
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    return {key: value.numpy() for key, value in signature(**{key: tf.constant(value) for key, value in fed.items()}).items()}


def by_c_api(folder, fed):
    """Calls TF_LoadSessionFromSavedModel and TF_SessionRun of TensorFlow's library. Names of values are read from the file's signature."""
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2
    name = next(pathlib.Path(tf.__file__).parent.glob("libtensorflow_cc.so*"))
    c = ctypes.CDLL(str(name))
    pointer = ctypes.c_void_p

    class Output(ctypes.Structure):
        _fields_ = [("operation", pointer), ("index", ctypes.c_int)]

    for function in ("TF_NewStatus", "TF_NewGraph", "TF_NewSessionOptions", "TF_LoadSessionFromSavedModel", "TF_GraphOperationByName", "TF_AllocateTensor",
                     "TF_TensorData"):
        getattr(c, function).restype = pointer
    c.TF_Message.restype, c.TF_Dim.restype = ctypes.c_char_p, ctypes.c_int64
    status, graph = pointer(c.TF_NewStatus()), pointer(c.TF_NewGraph())

    def check():
        assert c.TF_GetCode(status) == 0, c.TF_Message(status).decode()

    tags = (ctypes.c_char_p * 1)(b"serve")
    session = pointer(c.TF_LoadSessionFromSavedModel(pointer(c.TF_NewSessionOptions()), None, str(folder).encode(), tags, 1, graph, None, status))
    check()
    meta = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs[0]
    signature = meta.signature_def["serving_default"]

    def output(info):
        operation, index = info.name.split(":")
        found = c.TF_GraphOperationByName(graph, operation.encode())
        assert found, f"the graph has no '{operation}'"
        return Output(found, int(index))

    def tensor(value, dtype):
        value = np.ascontiguousarray(value)
        made = pointer(c.TF_AllocateTensor(ctypes.c_int(dtype), (ctypes.c_int64 * value.ndim)(*value.shape), value.ndim, ctypes.c_size_t(value.nbytes)))
        ctypes.memmove(c.TF_TensorData(made), value.ctypes.data, value.nbytes)
        return made

    ins = (Output * len(fed))(*(output(signature.inputs[k]) for k in fed))
    values = (pointer * len(fed))(*(tensor(v, signature.inputs[k].dtype) for k, v in fed.items()))
    keys = list(signature.outputs)
    outs, got = (Output * len(keys))(*(output(signature.outputs[k]) for k in keys)), (pointer * len(keys))()
    c.TF_SessionRun(session, None, ins, values, len(fed), outs, got, len(keys), None, 0, None, status)
    check()
    answers = {}
    for key, made in zip(keys, got):
        made = pointer(made)
        shape = [c.TF_Dim(made, i) for i in range(c.TF_NumDims(made))]
        kind = tf.dtypes.as_dtype(c.TF_TensorType(made)).as_numpy_dtype
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        answers[key] = np.frombuffer(ctypes.string_at(c.TF_TensorData(made), size), kind).reshape(shape)
    c.TF_CloseSession(session, status)
    check()
    return answers


def by_onnxruntime(file, fed):
    import onnxruntime
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, fed)))


def compare(title, got, answers):
    """Prints the largest difference, relative to the largest element. Returns whether all outputs are equal enough."""
    bad, worst = [], 0.0
    for key, wanted in answers.items():
        value = got.get(key)
        if value is None or value.shape != wanted.shape or value.dtype != wanted.dtype:
            bad.append(f"'{key}' is {None if value is None else (value.dtype, value.shape)} instead of {wanted.dtype, wanted.shape}")
        elif wanted.size:
            error = float(np.abs(value.astype(np.float64) - wanted).max()) / max(float(np.abs(wanted.astype(np.float64)).max()), 1e-30)
            worst = max(worst, error)
            if not error <= 1e-5:
                bad.append(f"'{key}' differs by {error:.1e} of its largest element")
    print(f"{title}: {len(answers)} outputs, {worst:.1e}" + (f": FAILED: {'; '.join(bad)}" if bad else ""), flush=True)
    return not bad


def refused(title, read, op):
    """Returns whether TensorFlow names the op, one of ours, as the reason why it does not load the model."""
    try:
        read()
    except Exception as e:
        print(f"{title}: {'not loaded, because' if op in str(e) else 'FAILED:'} {str(e).splitlines()[0][:120]}", flush=True)
        return op in str(e)
    print(f"{title}: FAILED: is loaded, although {op} is ours; take it out of OWN_OPS")
    return False


def main(names):
    good = True
    for name in names or written_models.NETS:
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root)
            (folder / "saved").mkdir()
            fed, answers = written_models.write(name, folder / "saved" / "saved_model.pb")
            for title, read in (("tf.saved_model.load", by_saved_model_load), ("TensorFlow's C API", by_c_api)):
                if name not in written_models.OWN_OPS:
                    good &= compare(f"{name} by {title}", read(folder / "saved", fed), answers)
                else:
                    good &= refused(f"{name} by {title}", lambda: read(folder / "saved", fed), written_models.OWN_OPS[name])
            if name in written_models.ONLY_TENSORFLOW:
                continue
            subprocess.run([BUILD / "bin" / "thalweg", "convert", folder / "saved", folder / "net.onnx"], check=True, stdout=subprocess.DEVNULL)
            good &= compare(f"{name} by ONNX Runtime", by_onnxruntime(folder / "net.onnx", fed), answers)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
