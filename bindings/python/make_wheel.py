"""Makes the wheel. For pip: the hooks of PEP 517, over what `cmake --install` installs. For tools/release: write().

The folder `thalweg` of the wheel is the Python package and an installed tree at once: bin, include, lib and share lie beside the modules.
The file asks for no other package, so that pip works without a network as well."""
import base64
import hashlib
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator

HERE = pathlib.Path(__file__).absolute().parent
NEEDED = ("bin/thalweg", "lib/libthalweg.so.0", "lib/thalweg/thalweg-*", "lib/thalweg/plugins/*.so", "include/thalweg/thalweg.h")
PYTHON = "lib/thalweg/python/"  # where an installed tree has the package
LICENCES = ("LICENSE", "THIRD_PARTY.md")  # of what goes in
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes for the same files


class Wheel:
    def __init__(self, path: pathlib.Path, level: int):
        self.file, self.records = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level), []

    def add(self, name: str, data: bytes, executable: bool = False) -> None:
        info = zipfile.ZipInfo(name, EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        self.file.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}")

    def close(self, record: str) -> None:
        info = zipfile.ZipInfo(record, EPOCH)
        info.external_attr = 0o100644 << 16
        self.file.writestr(info, "\n".join([*self.records, f"{record},,", ""]))
        self.file.close()


def metadata(project: dict, readme: str, licences: list[str]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}", f"Summary: {project['description']}",
             f"License: {project['license']['text']}", *(f"License-File: {name}" for name in licences),
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [f'Requires-Dist: {need} ; extra == "{extra}"' for need in needs]
    lines += ["Description-Content-Type: text/markdown", "", readme]
    return "\n".join(lines)


def members(prefix: pathlib.Path) -> Iterator[tuple[str, bytes, bool]]:
    """Yields (path below `thalweg`, contents, whether it is executable) for each file of an installed tree that a wheel has.

    A wheel has no symbolic links. The library therefore goes in once, under the name that programs load, and a linker script takes the
    place of libthalweg.so. Static libraries are left out: they are as large as all else together."""
    for file in sorted(prefix.rglob("*")):
        name = file.relative_to(prefix).as_posix()
        if not file.is_file() or name.endswith(".a"):
            continue
        data, executable = file.read_bytes(), bool(file.stat().st_mode & 0o100)
        if name.startswith("lib/libthalweg.so"):
            if name == "lib/libthalweg.so.0":
                yield name, data, True
            elif name == "lib/libthalweg.so":
                yield name, b"/* GNU ld script */\nINPUT(libthalweg.so.0)\n", False
            continue
        if name.startswith("lib/cmake/"):
            data = data.replace(b"/lib/libthalweg.so.0." + _version(prefix).encode().partition(b".")[2], b"/lib/libthalweg.so.0")
        yield name.removeprefix(PYTHON + "thalweg/"), data, executable


def _version(prefix: pathlib.Path) -> str:
    """Returns the version of an installed tree, from the file name of its library."""
    return (prefix / "lib/libthalweg.so.0").resolve().name.removeprefix("libthalweg.so.")


def write(folder: pathlib.Path, prefix: pathlib.Path, project: dict, readme: str, platform: str, level: int = 6) -> pathlib.Path:
    """Writes the wheel of an installed tree into a folder.   platform: the last part of its tag."""
    for pattern in NEEDED:
        if not any(prefix.glob(pattern)):
            raise SystemExit(f"make_wheel.py: nothing installed matches {pattern}; build first, with all default targets")
    stem = f"{project['name']}-{project['version']}"
    tag = f"py3-none-{platform}"
    path, info = folder / f"{stem}-{tag}.whl", f"{stem}.dist-info"
    wheel = Wheel(path, level)
    for name, data, executable in members(prefix):
        wheel.add(f"thalweg/{name}", data, executable)
    doc = prefix / "share/doc/thalweg"
    licences = [*LICENCES, *(f"licences/{file.name}" for file in sorted(doc.glob("licences/*")))]
    for name in licences:
        wheel.add(f"{info}/{name}", (doc / name).read_bytes())
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    wheel.add(f"{info}/METADATA", metadata(project, readme, licences).encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: thalweg\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{info}/entry_points.txt", f"[console_scripts]\n{scripts}".encode())
    wheel.close(f"{info}/RECORD")
    return path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    cmake = shutil.which("cmake")
    if cmake is None:
        raise SystemExit("make_wheel.py: cmake is needed to install the library")
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder)
        subprocess.run([cmake, "--install", HERE.parent, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        return write(pathlib.Path(wheel_directory), prefix, project, (HERE / project["readme"]).read_text(), platform).name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("make_wheel.py: there are no source archives of the package alone; it is made by building Thalweg")
