"""The tests of packages that need root, the network or minutes: packages_nightly.py PART [FOLDER]

Without a FOLDER of packages, checkers and bare make their own.

  checkers       lintian without errors, auditwheel, SPDX's own validator. tools/setup --release installs them
  reproducible   two copies of an installed tree, made under other umasks and at other times, give equal packages
  baseline       library and CPU kernels compute on a processor of the level x86-64-v2 (qemu-user)
  bare           each package is installed on a bare Debian 12: .deb, wheel, tarball"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from packages import BUILD, DATA, EPOCH, SOURCE, WORK, check, finish, must, one, refuse_instrumented, release, run, skip, unpack

VENV = pathlib.Path(os.environ["THALWEG_RELEASE_PATH"])  # of tools/setup --release


def packages():
    if len(sys.argv) == 3:
        return {file.name: file for file in pathlib.Path(sys.argv[2]).iterdir()}
    return release(WORK / "out")


def checkers():
    if not shutil.which("lintian") or not (VENV / "bin/auditwheel").exists():
        skip("no lintian or auditwheel; tools/setup --release installs them")
    files = packages()
    check(one(files, r".*\.oci\.tar").stat().st_size <= 60e6, "the image has at most 60 MB")
    for name, path in sorted(files.items()):
        if name.endswith(".deb"):
            status, said = run("lintian", "--tag-display-limit", "0", path)
            errors = [line for line in said.splitlines() if line.startswith("E:")]
            check(status in (0, 2) and not errors, f"lintian has no error for {name}", said)
    said = must(VENV / "bin/auditwheel", "show", one(files, r".*\.whl"))
    most = re.search(r'platform\s+tag\s+to\s+"manylinux_2_(\d+)_|following\s+platform\s+tag:\s+"manylinux_2_(\d+)_', said)
    check(most is not None and int(most[1] or most[2]) <= 36, "auditwheel finds nothing newer than manylinux_2_36", said)
    said = run(VENV / "bin/pyspdxtools", "-i", one(files, r".*\.spdx\.json"))
    check(said[0] == 0 and "valid" in said[1], "SPDX's validator accepts the list of contents", said[1])


def reproducible():
    must("cmake", "--install", BUILD, "--prefix", WORK / "tree")
    must("bash", "-c", "umask 077; cp -r --no-preserve=mode,timestamps tree other && chmod +x other/bin/* other/lib/thalweg/thalweg-*; "
                       "find other -name '*.so*' -type f -exec chmod +x {} +; find other -exec touch -h -d 2001-02-03 {} +")
    first = release(WORK / "first", build=WORK / "tree")
    second = release(WORK / "second", build=WORK / "other")
    check(set(first) == set(second) and len(first) > 10, "the same packages")
    for name in sorted(set(first) & set(second)):
        check(first[name].read_bytes() == second[name].read_bytes(), f"{name} has the same bytes")


def baseline():
    emulator = shutil.which("qemu-x86_64")
    if not emulator:
        skip("no qemu-x86_64; tools/setup --release installs it")
    must("cmake", "--install", BUILD, "--prefix", WORK / "tree")
    examples = SOURCE / "c_api/examples"
    must("bash", "-euc", f"cc {examples}/digits.c {examples}/digits_plot.c -Itree/include -Ltree/lib -lthalweg -lm -Wl,-rpath,{WORK}/tree/lib -o digits")
    tools = {"THALWEG_OPTIONS": "plugin_probe=in_process", "THALWEG_PLUGIN_PATH": f"only:{WORK}/tree/lib/thalweg/plugins/libcpu.so"}
    started = time.monotonic()
    status, said = run(emulator, "-cpu", "Nehalem", WORK / "digits", "--data", DATA / "digits.csv", "--out", WORK / "net", "--epochs", "2", "--quiet", **tools)
    check(status == 0, f"digits trains on Nehalem (x86-64-v2) in {time.monotonic() - started:.0f} s", said)
    must(WORK / "digits", "--data", DATA / "digits.csv", "--out", WORK / "here", "--epochs", "2", "--quiet", **tools)
    there, here = (float((WORK / folder / "accuracy.txt").read_text()) for folder in ("net", "here"))
    check(abs(there - here) < 3 and there > 80, f"it learns as much as here: {there} % and {here} %")


BARE = r"""
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
say() { echo "== $*"; }
say debs
apt-get install -y -qq --no-install-recommends /packages/*.deb >/tmp/apt.log 2>&1 || { tail -n 20 /tmp/apt.log; exit 1; }
thalweg plugins
thalweg plugins --json | python3 -c 'import json, sys
bad = [(p["path"], p["reason"]) for p in json.load(sys.stdin) if p["state"] not in ("loaded", "known") and "opencl" not in p["path"]]
sys.exit(str(bad) if bad else 0)'
python3 -m thalweg --version
python3 /packages/digits.py /packages/digits.csv | tee /tmp/deb.txt
apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config >/tmp/apt.log 2>&1
cc /usr/share/doc/thalweg/c_api/examples/hello.c $(pkg-config --cflags --libs thalweg) -o /tmp/hello
/tmp/hello
cd /tmp && thalweg new op Cubic >/dev/null && cd Cubic && sed -n '/^```sh/,/^```$/{/^```/d;p}' README.md >commands && bash -euo pipefail commands | tail -n 3
dpkg --remove $(cd /packages && ls *.deb | sed 's/_.*//') >/dev/null
! command -v thalweg
say tarball
mkdir -p /srv/any && tar -C /srv/any -xzf /packages/thalweg-*-linux-*.tar.gz
useradd -m someone
cd /srv/any/thalweg-* && cc share/doc/thalweg/c_api/examples/hello.c -Iinclude -Llib -lthalweg "-Wl,-rpath,$PWD/lib" -o /tmp/hello2
su someone -c "/tmp/hello2 && $PWD/bin/thalweg plugins && PYTHONPATH=$PWD/lib/thalweg/python python3 /packages/digits.py /packages/digits.csv"
say wheel
apt-get install -y -qq --no-install-recommends python3-venv >/tmp/apt.log 2>&1
su someone -c 'python3 -m venv --system-site-packages ~/venv && ~/venv/bin/pip install -q --no-index /packages/*.whl && cd && ~/venv/bin/python /packages/digits.py /packages/digits.csv && ~/venv/bin/thalweg plugins'
say done
"""


def bare():
    if os.geteuid() or not shutil.which("mmdebstrap"):
        skip("needs root and mmdebstrap; tools/setup --release installs it")
    page = (SOURCE / "bindings/python/README.md").read_text()
    files = packages()
    root = WORK / "root"
    must("mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates", "bookworm", root, timeout=1200)
    for name in ("apt.conf.d", "sources.list", "sources.list.d"):
        here, there = pathlib.Path("/etc/apt") / name, root / "etc/apt" / name
        if here.is_dir():
            shutil.rmtree(there, ignore_errors=True)
            shutil.copytree(here, there, symlinks=False, ignore=shutil.ignore_patterns("*.save"))
        elif here.exists():
            shutil.copy(here, there)
    for name in ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"):
        shutil.copy(f"/{name}", root / name)
    (root / "packages").mkdir()
    for file in [*files.values(), DATA / "digits.csv"]:
        shutil.copy(file, root / "packages")
    (root / "packages/digits.py").write_text(re.search(r"```python\n(import sys.*?)```", page, re.S)[1])
    (root / "bare.sh").write_text(BARE)
    # In namespaces of its own, so that nothing is mounted afterwards.
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
               'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" bash /bare.sh', str(root)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3000, check=False,
                          env={k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")} | {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                               "HOME": "/root", "LANG": "C.UTF-8"})
    print(done.stdout)
    check(done.returncode == 0 and done.stdout.count("y = 10") == 2 and "== done" in done.stdout, "every package works on a bare Debian 12")
    accuracies = [float(x) for x in re.findall(r"test accuracy ([\d.]+) %", done.stdout)]
    check(len(accuracies) == 3 and min(accuracies) >= 97.5, f"digits from .deb, tarball and wheel: {accuracies} %")


refuse_instrumented()
PARTS = {part.__name__: part for part in (checkers, reproducible, baseline, bare)}
if len(sys.argv) not in (2, 3) or sys.argv[1] not in PARTS:
    sys.exit(f"usage: packages_nightly.py {'|'.join(PARTS)} [FOLDER]")
PARTS[sys.argv[1]]()
finish()
