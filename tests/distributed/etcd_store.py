"""Runs an etcd for one test."""
import contextlib
import os
import subprocess
import time
import urllib.request

ETCD = "/usr/bin/etcd"
INSTALLED = os.path.exists(ETCD)


class Etcd:
    """An etcd process whose data is in the folder. client, peer: its addresses, host:port."""

    def __init__(self, folder, client, peer):
        self.folder, self.client, self.peer = str(folder), client, f"http://{peer}"
        self.start()

    def start(self):
        client, direct = f"http://{self.client}", urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.process = subprocess.Popen(
            [ETCD, "--data-dir", self.folder, "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls",
             self.peer, "--initial-advertise-peer-urls", self.peer, "--initial-cluster", f"default={self.peer}", "--log-level", "panic",
             "--unsafe-no-fsync"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            with contextlib.suppress(OSError), direct.open(client + "/health", timeout=1) as answer:
                if b"true" in answer.read():
                    return
            time.sleep(0.1)
        raise AssertionError("etcd is not well after a minute")

    def stop(self):
        self.process.kill()
        self.process.wait()
