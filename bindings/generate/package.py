"""What the packages of all bindings have in common: the folder in which one is put together, and archives with equal bytes for equal files."""
import argparse
import gzip
import io
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = "0.1.0"
PLUGINS = ["cpu", "onednn", "data", "input", "grpc", "onnx", "savedmodel"]  # in packages that hold the library
DAY = (1980, 1, 1, 0, 0, 0)  # the first day that a zip file knows


def arguments(what):
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a build tree, whose library describes the ops")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="for the package's files and its archive")
    return parser.parse_args()


def generate(language, build, out):
    """Puts the generated files into `out`."""
    description = build / "bindings/python/description.json"
    if not description.exists():
        sys.exit(f"make_package: {description} is missing; build the target thalweg_python first")
    subprocess.run([sys.executable, "-B", ROOT / "bindings/generate", language, "--api", ROOT / "c_api/api.json", "--ops", description, "--out", out],
                   check=True)


def copy(source, out, names):
    """Copies files and folders; leaves unchanged files alone, for builds that compare times."""
    for name in names:
        for path in sorted(source.glob(name)):
            files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
            for file in files:
                target = out / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists() or target.read_bytes() != file.read_bytes():
                    shutil.copyfile(file, target)
    shutil.copyfile(ROOT / "LICENSE", out / "LICENSE")


def natives(build, out):
    """Puts the library into a folder, with its plugins where it finds them, without symbols; returns the names of the files."""
    copied = {"libthalweg.so.0": build / "lib/libthalweg.so.0", "thalweg/thalweg-probe": build / "lib/thalweg/thalweg-probe"}
    copied |= {f"thalweg/plugins/lib{name}.so": build / f"lib/thalweg/plugins/lib{name}.so" for name in PLUGINS}
    names = [name for name, source in copied.items() if source.exists()]
    for name in names:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(copied[name].resolve(), out / name)
        subprocess.run(["strip", "--strip-unneeded", out / name], check=True)
        (out / name).chmod(0o755)
    return names


def files_of(folder):
    return sorted(p for p in folder.rglob("*") if p.is_file())


def zip_archive(path, folder, prefix, files=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files or files_of(folder):
            info = zipfile.ZipInfo(prefix + str(file.relative_to(folder)), DAY)
            info.external_attr, info.compress_type = (0o755 if file.stat().st_mode & 0o100 else 0o644) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, file.read_bytes())


def tar_archive(path, folder, prefix, files=None):
    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for file in files or files_of(folder):
            info = tarfile.TarInfo(prefix + str(file.relative_to(folder)))
            data = file.read_bytes()
            info.size, info.mode = len(data), 0o755 if file.stat().st_mode & 0o100 else 0o644
            archive.addfile(info, io.BytesIO(data))
