"""The packages that tools/release makes of the build: contents, names, dependencies, checksums, signature, list of contents; programs run
from the unpacked tarball after it is moved, from the wheel in an environment of its own, and from the container image's layers.

tests/tools/packages_nightly.py has what needs root, the network or minutes."""
import email
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import zipfile

from packages import BUILD, DATA, SOURCE, WORK, check, clean, finish, must, one, refuse_instrumented, release, run, unpack

VERSION = re.search(r"^project\(Thalweg VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
IDENTITY = "tester@example.org"


def test_sums_and_signature(out, files):
    lines = [line.split("  ") for line in (out / "SHA256SUMS").read_text().splitlines()]
    check({name for _, name in lines} == set(files) - {"SHA256SUMS", "SHA256SUMS.sig"}, "SHA256SUMS names every file")
    check(all(hashlib.sha256(files[name].read_bytes()).hexdigest() == digest for digest, name in lines), "the sums are right")
    (WORK / "signers").write_text(f"{IDENTITY} {(WORK / 'key.pub').read_text()}")
    verify = f"ssh-keygen -Y verify -f {WORK / 'signers'} -I {IDENTITY} -n thalweg-release -s SHA256SUMS.sig"
    status, said = run("bash", "-c", f"{verify} < SHA256SUMS", folder=out)
    check(status == 0 and "Good" in said, "the signature holds", said)
    status, said = run("bash", "-c", f"(cat SHA256SUMS; echo) | {verify}", folder=out)
    check(status != 0, "the signature of changed sums does not", said)


def test_list_of_contents(files):
    text = json.loads(one(files, r".*\.spdx\.json").read_text())
    by_id = {p["SPDXID"]: p for p in text["packages"]}
    check(text["spdxVersion"] == "SPDX-2.3" and len(by_id) == len(text["packages"]), "SPDX 2.3, each identifier once")
    ends = {r[end] for r in text["relationships"] for end in ("spdxElementId", "relatedSpdxElement")}
    check(ends <= set(by_id) | {"SPDXRef-DOCUMENT"}, "relationships name packages of the document", str(ends - set(by_id)))
    check(all(p["licenseConcluded"] not in ("", "NOASSERTION") and p["versionInfo"] for p in by_id.values()), "each has a licence and a version")
    for name, path in files.items():
        if name.endswith((".whl", ".tar.gz", ".deb", ".oci.tar")):
            entry = [p for p in by_id.values() if p["name"] == name]
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            check(len(entry) == 1 and entry[0]["checksums"][0]["checksumValue"] == digest, f"the list has {name} with its digest")
    names = {p["name"] for p in by_id.values()}
    check({"Protocol Buffers", "Abseil", "LevelDB", "Snappy", "RE2", "FarmHash", "Eigen"} <= names, "the list has what is linked in", str(names))


def test_wheel(wheel):
    check(re.fullmatch(rf"thalweg-{VERSION}-py3-none-manylinux_2_36_\w+\.whl", wheel.name), f"the wheel's name: {wheel.name}")
    with zipfile.ZipFile(wheel) as z:
        names = set(z.namelist())
        wanted = {"__init__.py", "bin/thalweg", "bin/thalweg-conformance", "lib/libthalweg.so", "lib/libthalweg.so.0", "lib/thalweg/plugins/libcpu.so",
                  "lib/thalweg/thalweg-serve", "include/thalweg/thalweg.h", "include/thalweg/plugin/plugin.h", "lib/cmake/Thalweg/ThalwegConfig.cmake",
                  "lib/pkgconfig/thalweg.pc",
                  "share/thalweg/api.json", "share/doc/thalweg/plugins/first_op.md", "share/doc/thalweg/plugins/templates/op/op.c.in",
                  "share/doc/thalweg/c_api/examples/hello.c", "share/doc/thalweg/ops/reference/README.md",
                  "share/doc/thalweg/bindings/python/examples/models/bench.py"}
        check({f"thalweg/{name}" for name in wanted} <= names, "the wheel has the whole tree", str({f"thalweg/{n}" for n in wanted} - names))
        check({info.date_time for info in z.infolist()} == {(1980, 1, 1, 0, 0, 0)}, "the wheel's files have one time")
        about = email.message_from_string(z.read(next(n for n in names if n.endswith("/METADATA"))).decode())
        info = f"thalweg-{VERSION}.dist-info/"
        missing = [name for name in about.get_all("License-File") if info + name not in names]
        check(not missing and "LICENSE" in about.get_all("License-File"), "the wheel has the licences that it names", str(missing))
        bundled = [n for n in names if "/bundled/" in n]
        notices = {n.rsplit("/", 1)[1] for n in names if n.startswith(info + "licences/")}
        if "thalweg/lib/thalweg/plugins/libgrpc.so" in names:
            check(any("libcpp-httplib-" in n for n in bundled), "cpp-httplib is in it")
            check(any("libgrpc-" in n for n in bundled) and {"grpc.txt", "openssl.txt"} <= notices, "gRPC and OpenSSL are in it with their licences")


def test_a_wheel_in_its_environment(wheel):
    home = WORK / "environment"
    must("/usr/bin/python3", "-m", "venv", "--system-site-packages", "--without-pip", home)
    if run("/usr/bin/python3", "-c", "import numpy")[0]:
        print("skipped  the wheel in an environment: /usr/bin/python3 has no NumPy")
        return
    must("/usr/bin/python3", "-m", "pip", "--python", home / "bin/python", "install", "--no-index", "-q", wheel)
    said = must(home / "bin/thalweg", "plugins", "--json")
    states = {p["path"].rsplit("/", 1)[-1]: (p["state"], p["reason"]) for p in json.loads(said) if p["path"]}
    bad = {name: why for name, (state, why) in states.items() if state not in ("loaded", "known")}
    check(not set(bad) - {"libonednn.so", "libopencl.so"}, "each plugin of the wheel loads, or lacks its vendor's library alone", str(bad))
    check(str(home) in must(home / "bin/python", "-c", "import thalweg; print(thalweg._library.path)"), "Python takes the wheel's library")
    said = must(home / "bin/thalweg", "bench", "model", "vae", "--repeat", "3", "--warmup", "0")
    check(said.startswith("vae: training, batch 1"), "the wheel times a network by its name, with the Python of its environment", said)
    must(home / "bin/thalweg", "new", "op", "Cubic", "--packages")
    page = (WORK / "Cubic/README.md").read_text()
    said = must("bash", "-euc", re.search(r"^```sh\n(.*?)^```$", page, re.M | re.S)[1], folder=WORK / "Cubic")
    check(" 0 failed" in said and "FAILED" not in said, "a plugin of `thalweg new` compiles, runs and passes the kit with the wheel alone", said)
    prefix = next((home / "lib").glob("python3*/site-packages/thalweg"))
    said = must("sh", "ci.sh", prefix, prefix, folder=WORK / "Cubic")
    check(said.count("== ") == said.count("keeps the rules of level 5") >= 2, "ci.sh checks it with each compiler on each version", said)
    status, said = run("sh", "-c", "COMPILERS=none sh ci.sh", folder=WORK / "Cubic")
    check(status == 1 and "none of the compilers is installed" in said, "ci.sh without a compiler fails", said)
    must("/usr/bin/python3", "-m", "pip", "wheel", "--no-index", "--no-deps", "-q", "-w", WORK / "plugin", WORK / "Cubic")
    must("/usr/bin/python3", "-m", "pip", "--python", home / "bin/python", "install", "--no-index", "-q", *(WORK / "plugin").glob("*.whl"))
    check("Cubic(x: T[*s])" in must(home / "bin/thalweg", "ops", "Cubic"), "its wheel, once installed, brings the op to the command")
    said = must("sh", "make_deb.sh", folder=WORK / "Cubic")
    said = must("dpkg-deb", "--contents", *(WORK / "Cubic").glob("thalweg-cubic_1.0_*.deb"))
    check("./usr/lib/thalweg/plugins/libCubic.so" in said, "its .deb has the plugin where the runtime searches", said)


def test_tarball(tarball):
    first, moved = unpack(tarball, WORK / "first"), WORK / "moved"
    (first / tarball.name.removesuffix(".tar.gz")).rename(moved)
    guides = moved / "share/doc/thalweg"
    dead = [f"{page.relative_to(guides)}: {link}" for page in guides.rglob("*.md")
            for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S))
            if "://" not in link and not (page.parent / link).exists()]
    check(not dead, "links between the installed pages lead somewhere", "\n".join(dead))
    flags = f"-I{moved}/include -L{moved}/lib -lthalweg -lm -Wl,-rpath,{moved}/lib"
    examples = guides / "c_api/examples"
    must("bash", "-euc", f"cc {examples}/hello.c {flags} -o hello; cc {examples}/digits.c {examples}/digits_plot.c {flags} -o digits")
    check(must(WORK / "hello").strip() == "y = 10", "hello from the moved tarball")
    said = must(WORK / "digits", "--data", DATA / "digits.csv", "--out", WORK / "net", "--epochs", "6", "--quiet")
    accuracy = float((WORK / "net/accuracy.txt").read_text())
    check(accuracy > 90, f"digits from the moved tarball: {accuracy} %", said)
    said = must(moved / "bin/thalweg", "run", WORK / "net/graph.pb", "--checkpoint", WORK / "net/model", "--feed", f"image={DATA}/digits.csv[0:4:1,0:64]",
                "--fetch", "prediction")
    check(said.startswith("prediction = ["), "thalweg run from the moved tarball", said)
    status, said = run(moved / "bin/thalweg", "serve", "/nowhere.pb")
    check(status == 1 and "'/nowhere.pb'" in said and "helper" not in said, "thalweg serve from the moved tarball finds its helper", said)
    return WORK / "net"


def test_debs(files):
    debs = {name.split("_")[0]: path for name, path in files.items() if name.endswith(".deb")}
    check({"libthalweg1", "libthalweg-dev", "thalweg", "thalweg-serve", "python3-thalweg", "thalweg-plugin-cpu"} <= set(debs), f"packages: {sorted(debs)}")
    built = {f"thalweg-plugin-{p.stem.removeprefix('lib').removeprefix('thalweg_')}" for p in (BUILD / "lib/thalweg/plugins").glob("*.so")}
    check(built <= set(debs), "each plugin has a package", str(built - set(debs)))
    fields, owners, clash = {}, {}, []
    for name, path in debs.items():
        fields[name] = dict(re.findall(r"^([\w-]+): (.*)$", must("dpkg-deb", "--field", path), re.M))
        for line in must("dpkg-deb", "--contents", path).splitlines():
            mode, owner, *_, place = line.split(" -> ")[0].split()
            clash += [place] if not mode.startswith("d") and owners.setdefault(place, name) != name else []
            if owner != "root/root":
                clash.append(f"{place} of {owner}")
    check(not clash, "no file is in two packages, root owns each", str(clash))
    check(all(f["Version"] == VERSION for f in fields.values()), "each has the version")
    exact = f"libthalweg1 (= {VERSION})"
    check(all(exact in f["Depends"] for name, f in fields.items() if name != "libthalweg1"), "each depends on the library of its version")
    check("libc6 (>=" in fields["libthalweg1"]["Depends"] and "libstdc++6" in fields["libthalweg1"]["Depends"], "dpkg-shlibdeps found C and C++")
    check("zlib1g" in fields["thalweg"]["Depends"] and "python3-numpy" in fields["python3-thalweg"]["Depends"], "dependencies of the command and of Python")
    check("httplib" in fields["thalweg-serve"]["Depends"] and "httplib" not in fields["thalweg"]["Depends"], "the model server alone depends on cpp-httplib")
    if "thalweg-plugin-grpc" in debs:
        check("libgrpc++" in fields["thalweg-plugin-grpc"]["Depends"], "the transport depends on gRPC", fields["thalweg-plugin-grpc"]["Depends"])
    rpath = must("bash", "-euc", f"dpkg-deb -x {debs['thalweg']} deb; readelf -d deb/usr/bin/thalweg")
    check("runpath" not in rpath.lower(), "an installed program has no run path", rpath)


def test_image(file, net):
    layout = unpack(file, WORK / "layout")
    index = json.loads((layout / "index.json").read_text())

    def blob(entry):
        path = layout / "blobs" / entry["digest"].replace(":", "/")
        data = path.read_bytes()
        assert hashlib.sha256(data).hexdigest() == path.name and len(data) == entry["size"], path
        return path

    manifest = json.loads(blob(index["manifests"][0]).read_text())
    config = json.loads(blob(manifest["config"]).read_text())
    root = WORK / "root"
    root.mkdir()
    for layer in manifest["layers"]:
        must("tar", "--no-same-owner", "-C", root, "-xzf", blob(layer))
    check(len(config["rootfs"]["diff_ids"]) == len(manifest["layers"]) and config["config"]["Entrypoint"] == ["/usr/bin/thalweg"], "its configuration")
    shutil.copytree(net, root / "tmp/net")
    shutil.copy(DATA / "digits.csv", root / "tmp/digits.csv")
    inside = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child=TERM", "sh", "-c",
              'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec env -i PATH=/usr/bin HOME=/tmp /usr/sbin/chroot "$0" "$@"', root]
    if run("unshare", "--map-root-user", "--mount", "--pid", "--fork", "true")[0]:
        print("skipped  the image in namespaces: this machine permits none")
        return
    said = must(*inside, "/usr/bin/thalweg", "run", "/tmp/net/graph.pb", "--checkpoint", "/tmp/net/model", "--feed", "image=/tmp/digits.csv[0:4:1,0:64]",
                "--fetch", "prediction")
    check(said.startswith("prediction = ["), "thalweg run in the image", said)
    status, said = run(*inside, "/usr/bin/thalweg", "serve", "/nowhere.pb")
    check(status == 1 and "'/nowhere.pb'" in said and "helper" not in said, "thalweg serve in the image finds its helper", said)
    states = {p["id"]: p["state"] for p in json.loads(must(*inside, "/usr/bin/thalweg", "plugins", "--json"))}
    check(set(states.values()) <= {"loaded", "known"} and "org.thalweg.cpu" in states, "each plugin of the image loads", str(states))
    a_worker_serves(inside, root)


def a_worker_serves(inside, root):
    """A worker in the image says where it listens, over the transport of gRPC, and ends when it is told to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (root / "tmp/cluster.json").write_text(json.dumps({"cluster": {"worker": [address]}}))
    command = [*map(str, inside), "/usr/bin/thalweg", "worker", "--cluster", "/tmp/cluster.json", "--job", "worker"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean()) as worker:
        first = worker.stdout.readline()
        check(address in first and first.startswith("listening at "), "thalweg worker in the image", first)
        children = pathlib.Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGTERM)
        rest = worker.stdout.read()
        check(worker.wait() == 0 and not rest, "the worker ends in order", rest)


def main():
    refuse_instrumented()
    must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", IDENTITY, "-f", WORK / "key")
    out = WORK / "out"
    files = release(out, "--sign", WORK / "key", level=0)
    test_sums_and_signature(out, files)
    test_list_of_contents(files)
    net = test_tarball(one(files, r"thalweg-.*\.tar\.gz"))
    test_debs(files)
    test_image(one(files, r".*\.oci\.tar"), net)
    wheel = one(files, r".*\.whl")
    test_wheel(wheel)
    test_a_wheel_in_its_environment(wheel)
    status, said = run(SOURCE / "tools/release", "--only", "rpm")
    check(status == 2 and said == "release: 'rpm' is no kind of package; there are: tarball, wheel, deb, image; see tools/release --help\n", "an unknown kind", said)
    status, said = run(SOURCE / "tools/release", "--tree", WORK / "nowhere", "--out", WORK / "none")
    check(status == 1 and "is no installed Thalweg" in said, "a tree that is none", said)
    finish()


main()
