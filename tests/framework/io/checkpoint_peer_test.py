"""Checkpoints between TensorFlow and us: what it writes we read, what we write it reads, and the files are the same bytes."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
try:
    import numpy as np
    import tensorflow as tf
except ImportError as error:
    print(f"skipped: {error}; run tools/setup --peers")
    sys.exit(77)

PROGRAM = pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "tests" / "checkpoint_peer"
TYPES = [
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128", "float8_e5m2", "float8_e4m3fn"
]


def save(prefix, tensors, slices=None):
    names = list(tensors)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[(slices or {}).get(n, "") for n in names],
                      tensors=[tensors[n] for n in names])


def copy(source, target):
    subprocess.run([PROGRAM, "copy", source, target], check=True)


class CheckpointPeerTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, prefix, tensors):
        found = tf.train.load_checkpoint(str(prefix))
        self.assertEqual(sorted(found.get_variable_to_shape_map()), sorted(tensors))
        for name, want in tensors.items():
            # Through RestoreV2, which verifies checksums.
            got = tf.raw_ops.RestoreV2(prefix=str(prefix), tensor_names=[name], shape_and_slices=[""], dtypes=[want.dtype])[0]
            self.assertEqual(got.shape, want.shape, name)
            if want.dtype == tf.string:
                np.testing.assert_array_equal(got.numpy(), want.numpy(), name)
            else:
                self.assertEqual(got.numpy().tobytes(), want.numpy().tobytes(), name)

    def tensors(self):
        random = np.random.default_rng(7)
        numbers = tf.constant(random.integers(0, 100, (3, 5)), tf.float32)
        all_types = {f"types/{t}": tf.cast(numbers, t) for t in TYPES}
        return all_types | {
            "scalar": tf.constant(3.5),
            "empty": tf.zeros([0, 4]),
            "big": tf.constant(random.normal(size=(513, 700)), tf.float32),
            "strings": tf.constant([["", "a"], [b"\x00\xff" * 200, "x" * 70000]]),
            "string": tf.constant("one"),
            "no_strings": tf.constant([], tf.string),
            "nan": tf.constant([np.nan, np.inf, -0.0]),
        }

    def test_each_reads_what_the_other_writes(self):
        tensors = self.tensors()
        save(self.folder / "theirs", tensors)
        copy(self.folder / "theirs", self.folder / "ours")
        self.check(self.folder / "ours", tensors)

    def test_the_files_are_the_same_bytes(self):
        tensors = self.tensors()
        save(self.folder / "theirs", dict(sorted(tensors.items())))
        copy(self.folder / "theirs", self.folder / "ours")
        for end in (".data-00000-of-00001", ".index"):
            self.assertEqual((self.folder / f"theirs{end}").read_bytes(), (self.folder / f"ours{end}").read_bytes(), end)

    def test_tensorflow_reads_what_we_saved_over_an_older_one(self):
        save(self.folder / "theirs", self.tensors())
        for _ in range(3):
            copy(self.folder / "theirs", self.folder / "ours")
            self.check(self.folder / "ours", self.tensors())
            self.assertEqual(len(list(self.folder.glob("ours.*"))), 2)

    def test_partitioned_variables_become_whole(self):
        whole = {f"w{axis}": tf.reshape(tf.range(200 * 300, dtype=tf.float32), [200, 300]) for axis in (0, 1)}
        for part, cut in (("a", 70), ("b", 130)):
            begin = 0 if part == "a" else 70
            save(self.folder / part, {"w0": whole["w0"][begin:begin + cut], "w1": whole["w1"][:, begin:begin + (cut if part == "a" else 230)]},
                 {"w0": f"200 300 {begin},{cut}:-", "w1": f"200 300 -:{begin},{cut if part == 'a' else 230}"})
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(self.folder / "a"), str(self.folder / "b")],
                                      destination_prefix=str(self.folder / "theirs"))
        copy(self.folder / "theirs", self.folder / "ours")
        self.check(self.folder / "ours", whole)

    def test_shards_of_several_savers(self):
        tensors = self.tensors()
        names = sorted(tensors)
        for i in range(3):
            save(self.folder / f"part{i}", {n: tensors[n] for n in names[i::3]})
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(self.folder / f"part{i}") for i in range(3)],
                                      destination_prefix=str(self.folder / "theirs"))
        self.assertEqual(len(list(self.folder.glob("theirs.data*"))), 3)
        copy(self.folder / "theirs", self.folder / "ours")
        self.check(self.folder / "ours", tensors)

    def test_a_training_checkpoint_object_is_read_whole(self):
        layer = tf.Module()
        layer.kernel = tf.Variable(tf.random.normal([20, 30]), name="kernel")
        layer.step = tf.Variable(5, dtype=tf.int64)
        path = tf.train.Checkpoint(model=layer).save(str(self.folder / "ckpt"))
        copy(path, self.folder / "ours")
        restored = tf.Module()
        restored.kernel = tf.Variable(tf.zeros([20, 30]))
        restored.step = tf.Variable(0, dtype=tf.int64)
        tf.train.Checkpoint(model=restored).restore(str(self.folder / "ours")).expect_partial()
        self.assertEqual(restored.kernel.numpy().tobytes(), layer.kernel.numpy().tobytes())
        self.assertEqual(int(restored.step), 5)


if __name__ == "__main__":
    unittest.main()
