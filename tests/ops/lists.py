"""One plain use of each op on lists, for simple.py: (op, inputs, attributes)."""
import numpy as np

import tw

i32 = lambda *v: np.array(v, np.int32)
ANY, one, two = np.int32(-1), np.int32(1), np.ones(2, np.float32)
rows, handle = np.ones((3, 2), np.float32), tw.List(np.ones((3, 2), np.float32))
of, shaped = dict(element_dtype=np.float32), dict(element_dtype=np.float32, shape_type=np.int32)
USES = [
    ("EmptyTensorList", [ANY, ANY], shaped), ("TensorListReserve", [ANY, one], shaped), ("TensorListPushBack", [handle, two], of),
    ("TensorListPopBack", [handle, ANY], of), ("TensorListGetItem", [handle, one, ANY], of), ("TensorListSetItem", [handle, one, two], of),
    ("TensorListLength", [handle], {}), ("TensorListResize", [handle, one], {}), ("TensorListElementShape", [handle], dict(shape_type=np.int32)),
    ("TensorListStack", [handle, ANY], of), ("TensorListFromTensor", [rows, ANY], shaped), ("TensorListGather", [handle, i32(1, 1), ANY], of),
    ("TensorListScatter", [rows, i32(2, 0, 1), ANY], shaped), ("TensorListScatterV2", [rows, i32(2, 0, 1), ANY, np.int32(4)], shaped),
    ("TensorListScatterIntoExistingList", [handle, rows, i32(2, 0, 1)], of), ("TensorListConcat", [handle], of),
    ("TensorListConcatV2", [handle, ANY, np.zeros(0, np.int64)], shaped), ("TensorListSplit", [rows, ANY, np.int64([1, 2])], shaped),
    ("TensorListConcatLists", [handle, handle], of), ("TensorListPushBackBatch", [handle, rows[:1]], of),
]
