"""A container image without a base image and without a daemon: an OCI image layout in a tar file, as `podman load`, `skopeo` and
`docker load` read it.

Two layers: the C and C++ run-time libraries of this machine's Debian, and Thalweg below /usr. There is no shell. The programs run as
user 65532, who owns /home/thalweg alone."""
import hashlib
import io
import json
import pathlib
import tarfile
import tempfile
import time

import bundle
from common import Failure, Release, copy, files_below, is_elf, packed, tar

USER = 65532
# What a container runs. The conformance kit, headers and guides are for who builds plugins; a plugin is built elsewhere.
FILES = ("bin/thalweg", "lib/libthalweg.so.*", "lib/thalweg/thalweg-*", "lib/thalweg/plugins/*.so", "lib/thalweg/bundled/*",
         "share/doc/thalweg/LICENSE", "share/doc/thalweg/THIRD_PARTY.md", "share/doc/thalweg/licences/*")
# These plugins only open libraries that the image does not have: oneDNN, drivers of OpenCL and of CUDA.
LEFT_OUT = {"libonednn.so", "libopencl.so", "libthalweg_cuda.so"}
LOADERS = {"x86_64": "lib64/ld-linux-x86-64.so.2", "aarch64": "lib/ld-linux-aarch64.so.1"}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def thalweg_layer(prefix: pathlib.Path, root: pathlib.Path, release: Release) -> None:
    for pattern in FILES:
        for file in sorted(prefix.glob(pattern)):
            if file.name not in LEFT_OUT:
                copy(file, root / "usr" / file.relative_to(prefix), release.epoch)


def system_layer(programs: list[pathlib.Path], root: pathlib.Path, release: Release) -> dict[str, bundle.Package]:
    """Copies what the programs need of this machine: loader, C and C++ libraries, compression. Returns {path in the image: its package}."""
    folder, packages = root / f"usr/lib/{release.machine}-linux-gnu", {}
    wanted: dict[str, pathlib.Path] = {}
    for program in programs:
        wanted |= {name: path for name, path in bundle.needs(program).items() if bundle.EVERYWHERE.match(name)}
    loader = LOADERS[release.machine]
    wanted.setdefault(pathlib.Path(loader).name, pathlib.Path("/") / loader)
    origins = bundle.packages_of(wanted.values())
    for name, path in sorted(wanted.items()):
        copy(path.resolve(), folder / name, release.epoch)
        packages[f"usr/lib/{folder.name}/{name}"] = origins[path]
    (folder / pathlib.Path(loader).name).chmod(0o755)
    for link in ("lib", "lib64"):
        (root / link).symlink_to(f"usr/{link}")
    (root / "usr/lib64").mkdir()
    if loader.startswith("lib64/"):
        (root / "usr" / loader).symlink_to(f"../lib/{folder.name}/{pathlib.Path(loader).name}")
    else:
        (root / "usr" / loader).symlink_to(f"{folder.name}/{pathlib.Path(loader).name}")
    for package in packages.values():
        notice = root / "usr/share/doc/thalweg/licences" / f"{package.source}.txt"
        if not notice.exists():
            copy(package.notice.resolve(), notice, release.epoch)
            notice.chmod(0o644)
    for name, text in (("passwd", f"root:x:0:0:root:/:/nonexistent\nthalweg:x:{USER}:{USER}::/home/thalweg:/nonexistent\n"),
                       ("group", f"root:x:0:\nthalweg:x:{USER}:\n"), ("nsswitch.conf", "hosts: files dns\n")):
        (root / "etc").mkdir(exist_ok=True)
        (root / "etc" / name).write_text(text)
        (root / "etc" / name).chmod(0o644)
    for folder in ("home/thalweg", "tmp", "proc", "dev", "sys"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    return packages


def make(prefix: pathlib.Path, release: Release) -> tuple[pathlib.Path, dict[str, bundle.Package]]:
    """Makes the image of a tree with its bundled libraries. Returns its file and {path in the image: package} of the system's libraries."""
    if release.machine not in LOADERS:
        raise Failure(f"no image is made for {release.machine}; there are: {', '.join(LOADERS)}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        thalweg_layer(prefix, folder / "thalweg", release)
        programs = [file for file in files_below(folder / "thalweg") if is_elf(file)]
        packages = system_layer(programs, folder / "system", release)
        layers = [tar(folder / "system", "", release.epoch, owners=[("home/thalweg", USER)], modes=[("tmp", 0o1777)]),
                  tar(folder / "thalweg", "", release.epoch)]
    out = release.out / f"thalweg-{release.version}-linux-{release.machine}.oci.tar"
    out.write_bytes(layout(layers, release))
    return out, packages


def layout(layers: list[bytes], release: Release) -> bytes:
    """Returns the tar file of an OCI image layout with these layers, each a tar archive."""
    blobs: dict[str, bytes] = {}

    def blob(data: bytes, kind: str) -> dict:
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch))
    labels = {"org.opencontainers.image.title": "thalweg", "org.opencontainers.image.version": release.version,
              "org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.created": when}
    config = {"created": when, "architecture": ARCHITECTURES[release.machine], "os": "linux",
              "config": {"User": f"{USER}:{USER}", "Env": ["PATH=/usr/bin", "HOME=/home/thalweg"], "Entrypoint": ["/usr/bin/thalweg"],
                         "Cmd": ["--help"], "WorkingDir": "/home/thalweg", "Labels": labels},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]},
              "history": [{"created": when, "created_by": f"tools/release: {what}"} for what in ("run-time libraries", "Thalweg")]}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob(json.dumps(config, sort_keys=True).encode(), "config.v1+json"),
                "layers": [blob(packed(layer, release.level), "layer.v1.tar+gzip") for layer in layers], "annotations": labels}
    described = blob(json.dumps(manifest, sort_keys=True).encode(), "manifest.v1+json")
    described["annotations"] = {"org.opencontainers.image.ref.name": f"thalweg:{release.version}",
                                "io.containerd.image.name": f"localhost/thalweg:{release.version}"}
    described["platform"] = {"architecture": ARCHITECTURES[release.machine], "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [described]}
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index, sort_keys=True).encode()}
    files |= {f"blobs/sha256/{digest}": data for digest, data in sorted(blobs.items())}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(data), release.epoch, 0o644
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
