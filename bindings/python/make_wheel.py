"""Makes the wheel, for pip: the hooks of PEP 517. What `cmake --install` installs of library, plugins and program goes in as well.

It asks for no other package, so that pip works without a network as well."""
import base64
import hashlib
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).absolute().parent
INSTALLED = ("bin/thalweg", "lib/libthalweg.so.0", "lib/thalweg/thalweg-*", "lib/thalweg/plugins/*.so")
LICENCES = ("LICENSE", "THIRD_PARTY.md")  # of what goes in
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes for the same files


class Wheel:
    def __init__(self, path: pathlib.Path):
        self.file, self.records = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), []

    def add(self, name: str, data: bytes, executable: bool = False) -> None:
        info = zipfile.ZipInfo(name, EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        self.file.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}")

    def close(self, record: str) -> None:
        self.file.writestr(zipfile.ZipInfo(record, EPOCH), "\n".join([*self.records, f"{record},,", ""]))
        self.file.close()


def metadata(project: dict) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}", f"Summary: {project['description']}",
             f"License: {project['license']['text']}", *(f"License-File: {name}" for name in LICENCES),
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [f'Requires-Dist: {need} ; extra == "{extra}"' for need in needs]
    lines += ["Description-Content-Type: text/markdown", "", (HERE / project["readme"]).read_text()]
    return "\n".join(lines)


def installed_files(prefix: pathlib.Path) -> list[pathlib.Path]:
    """Of the library, its plugins and its program, installed below the prefix."""
    cmake = shutil.which("cmake")
    if cmake is None:
        raise SystemExit("make_wheel.py: cmake is needed to install the library")
    subprocess.run([cmake, "--install", HERE.parent, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    found = []
    for pattern in INSTALLED:
        matches = sorted(prefix.glob(pattern))
        if not matches:
            raise SystemExit(f"make_wheel.py: nothing installed matches {pattern}; build first: cmake --build {HERE.parent}")
        found += matches
    return found


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    stem = f"{project['name']}-{project['version']}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform}"
    path, info = pathlib.Path(wheel_directory) / f"{stem}-{tag}.whl", f"{stem}.dist-info"
    wheel = Wheel(path)
    for module in sorted((HERE / "thalweg").iterdir()):
        if module.suffix in (".py", ".pyi", ".typed"):
            wheel.add(f"thalweg/{module.name}", module.read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder)
        for file in installed_files(prefix):
            wheel.add(f"thalweg/{file.relative_to(prefix)}", file.read_bytes(), executable=True)
        for name in LICENCES:
            wheel.add(f"{info}/{name}", (prefix / "share/doc/thalweg" / name).read_bytes())
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    wheel.add(f"{info}/METADATA", metadata(project).encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: thalweg\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{info}/entry_points.txt", f"[console_scripts]\n{scripts}".encode())
    wheel.close(f"{info}/RECORD")
    return path.name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("make_wheel.py: there are no source archives of the package alone; it is made by building Thalweg")
