"""Runs list_programs.py in TensorFlow and writes the results to goldens/lists.json.gz:
tools/cmake/peer-python tests/ops/list_peer.py"""
import gzip
import json
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from list_programs import SEEDS, program, results  # noqa: E402

raw = tf.raw_ops


class Ops:
    def __init__(self, about):
        self.dtype, self.shape = tf.as_dtype(about["dtype"]), np.int32(about["shape"])

    def array(self, x):
        return tf.constant(x, self.dtype)

    def Empty(self, told):
        shape = np.array(-1 if told is None else told, np.int32)
        return raw.EmptyTensorList(element_shape=shape, max_num_elements=-1, element_dtype=self.dtype)

    def PushBack(self, handle, x):
        return raw.TensorListPushBack(input_handle=handle, tensor=self.array(x))

    def PopBack(self, handle):
        return raw.TensorListPopBack(input_handle=handle, element_shape=self.shape, element_dtype=self.dtype)[0]

    def SetItem(self, handle, at, x):
        return raw.TensorListSetItem(input_handle=handle, index=at, item=self.array(x))

    def Resize(self, handle, n):
        return raw.TensorListResize(input_handle=handle, size=n)

    def ScatterIntoExistingList(self, handle, rows, places):
        return raw.TensorListScatterIntoExistingList(input_handle=handle, tensor=self.array(rows), indices=places)

    def ScatterV2(self, handle, rows, places, n):
        return raw.TensorListScatterV2(tensor=self.array(rows), indices=places, element_shape=self.shape, num_elements=n)

    def sum(self, x, y):
        return tf.raw_ops.AddN(inputs=[x, y])

    def Length(self, handle):
        return raw.TensorListLength(input_handle=handle)

    def Stack(self, handle):
        return raw.TensorListStack(input_handle=handle, element_shape=self.shape, element_dtype=self.dtype)

    def ElementShape(self, handle):
        return raw.TensorListElementShape(input_handle=handle, shape_type=tf.int32)


found = {}
for seed in SEEDS:
    about = program(seed)
    found[str(seed)] = [x.numpy().tolist() for x in results(about, Ops(about))]
path = pathlib.Path(__file__).parent / "goldens" / "lists.json.gz"
path.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), mtime=0))
print(f"{len(found)} programs, {sum(map(len, found.values()))} results in {path}")
