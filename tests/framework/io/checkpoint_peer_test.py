"""Exchanges checkpoints with TensorFlow: we read its checkpoints, it reads ours, and the files have the same bytes."""
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


def copy(source, target, how="copy"):
    subprocess.run([PROGRAM, how, source, target], check=True)


class CheckpointPeerTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, prefix, tensors):
        found = tf.train.load_checkpoint(str(prefix))
        self.assertEqual(sorted(found.get_variable_to_shape_map()), sorted(tensors))
        for name, want in tensors.items():
            # Reads through RestoreV2, which verifies checksums.
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

    def test_tensorflow_reads_our_shards(self):
        save(self.folder / "theirs", self.tensors())
        copy(self.folder / "theirs", self.folder / "ours", "shards")
        self.assertEqual(len(list(self.folder.glob("ours.data-0000?-of-00003"))), 3)
        self.check(self.folder / "ours", self.tensors())

    def test_tensorflow_reads_our_pieces_whole_and_in_part(self):
        in_pieces = {f"types/{t}" for t in ("float32", "float64", "int32", "int64", "uint8")} | {"big", "scalar", "empty", "nan"}
        tensors = {n: t for n, t in self.tensors().items() if n in in_pieces}  # TensorFlow cannot slice other types
        save(self.folder / "theirs", tensors)
        copy(self.folder / "theirs", self.folder / "ours", "pieces")
        self.assertEqual(len(list(self.folder.glob("ours.*"))), 3)
        self.check(self.folder / "ours", tensors)
        part = tf.raw_ops.RestoreV2(prefix=str(self.folder / "ours"), tensor_names=["big"], shape_and_slices=["513 700 200,100:3,5"],
                                    dtypes=[tf.float32])[0]
        np.testing.assert_array_equal(part, tensors["big"][200:300, 3:8])
        copy(self.folder / "ours", self.folder / "again")
        self.check(self.folder / "again", tensors)

    def test_partitioned_variables_are_saved_alike(self):
        value = np.arange(70, dtype=np.float32).reshape(10, 7)
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            with tf.compat.v1.variable_scope("scope", partitioner=tf.compat.v1.fixed_size_partitioner(3, axis=0)):
                w = tf.compat.v1.get_variable("w", initializer=tf.constant(value), use_resource=True)
            saver = tf.compat.v1.train.Saver()
            session.run(tf.compat.v1.global_variables_initializer())
            theirs = saver.save(session, str(self.folder / "theirs"), write_meta_graph=False)
            copy(theirs, self.folder / "ours")
            copy(theirs, self.folder / "pieces", "pieces")
            for prefix in ("ours", "pieces"):
                session.run([v.assign(tf.zeros_like(v)) for v in w])
                saver.restore(session, str(self.folder / prefix))
                np.testing.assert_array_equal(np.concatenate(session.run(list(w))), value)

    def test_each_finds_the_latest_of_the_other(self):
        tensors = self.tensors()
        save(self.folder / "theirs", tensors)
        folder = self.folder / "ours"
        copy(self.folder / "theirs", folder, "folder")
        state = tf.train.get_checkpoint_state(str(folder))
        self.assertEqual([os.path.basename(p) for p in state.all_model_checkpoint_paths], ["model.ckpt-30", "model.ckpt-40"])
        self.assertEqual(list(state.all_model_checkpoint_timestamps), [1e9 + 3, 1e9 + 4])
        self.assertEqual(tf.train.latest_checkpoint(str(folder)), str(folder / "model.ckpt-40"))
        self.check(folder / "model.ckpt-40", tensors)
        # TensorFlow itself writes the state file, with absolute paths; then the folder is moved.
        model = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0]))
        manager = tf.train.CheckpointManager(model, str(self.folder / "manager"), max_to_keep=3)
        for _ in range(4):
            latest = manager.save()
        for place in ("manager", "moved"):
            copy(self.folder / place, self.folder / f"copy_{place}", "latest")
            self.assertEqual(sorted(tf.train.load_checkpoint(str(self.folder / f"copy_{place}")).get_variable_to_shape_map()),
                             sorted(tf.train.load_checkpoint(latest).get_variable_to_shape_map()))
            if place == "manager":
                (self.folder / "manager").rename(self.folder / "moved")
                latest = str(self.folder / "moved" / os.path.basename(latest))

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
