"""Tests of plugins/s3 at moto, an object store of PyPI (tools/setup --engines), and at a bucket of your own if S3_TEST_ROOT names a
folder there (s3://bucket/folder) and the environment has its keys. Skipped without both."""
import os
import signal
import socket
import subprocess
import sys
import time

import engine_tests
from engine_tests import skip

SOURCE = engine_tests.SOURCE
sys.path[:0] = [str(SOURCE / "tests/plugins"), str(SOURCE / "tests/support")]

import s3_stub
from free_port import free_port


def start_moto():
    """Starts a store and returns its process and address."""
    python = engine_tests.engines_python()
    if not python or subprocess.run([python, "-c", "import moto.server"], capture_output=True).returncode:
        skip("there is no moto; tools/setup --engines installs it")
    port = free_port()
    process = subprocess.Popen([python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    for _ in range(600):  # until it listens
        assert process.poll() is None, "moto ends at once"
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"http://127.0.0.1:{port}"
        time.sleep(0.1)
    raise AssertionError("moto does not listen")


def killed_save(cases, root):
    """A process that is killed at any moment of a save leaves the old checkpoint or the new one."""
    model = cases.Model(4 * cases.PART)
    with cases.tw.Checkpointer(model.session, root, model.saver) as c:
        c.save(1)
    for _ in range(5):
        process = cases.start_a_save(root)
        assert process.stdout.readline() == "begins\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        latest = cases.tw.latest_checkpoint(root)
        assert latest in (f"{root}/model.ckpt-1", f"{root}/model.ckpt-2"), latest
        with cases.tw.Checkpoint(latest) as c:
            c.verify()


def main():
    root, process = os.environ.get("S3_TEST_ROOT"), None
    try:
        import s3_cases
        if root:
            root = f"{root}/thalweg-{os.getpid()}-{time.time_ns()}"
        else:
            process, url = start_moto()
            status, answer = s3_stub.Raw(url, region="us-east-1").request("PUT", "/bucket")
            assert status == 200, answer
            s3_cases.use(url, s3_stub.KEY, s3_stub.SECRET, "us-east-1")
            root = "s3://bucket/run"
        for case in s3_cases.CASES:
            case(f"{root}/{case.__name__}")
            print(f"{case.__name__}: passed")
        killed_save(s3_cases, f"{root}/killed")
        print("killed_save: passed")
    finally:
        if process:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
