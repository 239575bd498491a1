"""A model by the C API, tw_model_load: called with inputs by name, it returns tensors by name."""
import ctypes

import thalweg as tw
from thalweg import _low
from thalweg.errors import check, made


class Model:
    """A loaded model. Raises thalweg.Error for what the runtime refuses."""

    def __init__(self, path):
        self._handle = 0
        self._handle = made(_low.tw_model_load, None, str(path).encode(), None)
        record = _low.tw_model_signature_at(self._handle, 0).contents
        self.inputs = [record.inputs[i].contents for i in range(record.n_inputs)]
        self.outputs = [record.outputs[i].contents for i in range(record.n_outputs)]

    def __del__(self):
        _low.tw_model_destroy(self._handle)

    def __call__(self, **inputs):
        given = {name: value if isinstance(value, tw.Tensor) else tw.Tensor(value) for name, value in inputs.items()}
        handles = (ctypes.c_void_p * len(self.inputs))(*(given.pop(v.name.decode())._handle for v in self.inputs))
        if given:
            raise KeyError(f"the model has no input {', '.join(given)}")
        results = (ctypes.c_void_p * len(self.outputs))()
        check(_low.tw_model_run(self._handle, None, handles, None, results))
        return {v.name.decode(): tw.Tensor._adopt(handle or 0) for v, handle in zip(self.outputs, results)}
