"""Shared libraries of others that a package brings along, because not every machine has them: gRPC, OpenSSL, and those of
images and sound.

Each is a copy of Debian's file in lib/thalweg/bundled. The copy has a name with a hash of its contents, so that it is never confused with
another library of the process: NumPy, Python's own ssl module and a program may have loaded others with the same name."""
import dataclasses
import os
import pathlib
import re
import subprocess
from collections.abc import Iterable

from common import Failure, components, copy, files_below, is_elf, run, sha256

FOLDER = "lib/thalweg/bundled"
# The libraries that every machine has, after PEP 600 (manylinux).
EVERYWHERE = re.compile(r"(ld-linux-x86-64|ld-linux-aarch64|libatomic|libc|libdl|libgcc_s|libm|libmvec|libpthread|librt|libstdc\+\+|libutil|libz)"
                        r"\.so\.\d+$|linux-vdso")


@dataclasses.dataclass(frozen=True)
class Package:
    """A Debian package that a library came from."""
    name: str
    source: str
    version: str
    licence: str
    home: str

    @property
    def notice(self) -> pathlib.Path:
        """Returns the file with its licence."""
        return pathlib.Path("/usr/share/doc") / self.name / "copyright"


def packages_of(libraries: Iterable[pathlib.Path]) -> dict[pathlib.Path, Package]:
    """Returns the Debian packages of files of this machine. Raises Failure if nobody noted the licence of a source package."""
    real = {library: str(library.resolve()).removeprefix("/usr") for library in libraries}
    # Debian 12 lists some files below /lib and others below /usr/lib, which are one folder. The command fails for either.
    said = subprocess.run(["dpkg-query", "--search", *sorted({prefix + path for path in real.values() for prefix in ("", "/usr")})],
                          capture_output=True, text=True, check=False).stdout
    owners = {path.removeprefix("/usr"): owner.split(",")[0] for owner, path in (line.split(": ", 1) for line in said.splitlines())}
    lost = [str(library) for library, path in real.items() if path not in owners]
    if lost:
        raise Failure(f"{', '.join(lost)}: of no Debian package, so the licence is not known")
    shown = run("dpkg-query", "--show", "--showformat=${binary:Package} ${Package} ${source:Package} ${Version}\\n", *sorted(set(owners.values())))
    known, facts = components()["shared"], {}
    for line in shown.splitlines():
        owner, name, source, version = line.split()
        if source not in known:
            raise Failure(f"package {name} brings a library along whose source package {source} is not in tools/packages/components.toml; "
                          "read its licence and add it")
        facts[owner] = facts[name] = Package(name, source, version, known[source]["licence"], known[source]["home"])
    return {library: facts[owners[path]] for library, path in real.items()}


def needs(file: pathlib.Path) -> dict[str, pathlib.Path]:
    """Returns the libraries that the loader of this machine opens for a file, directly or not: {name: path}."""
    found = {}
    for line in run("ldd", file).splitlines():  # "  libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x7f...)"
        name, arrow, path = (line.strip().rpartition(" (")[0] or line.strip()).partition(" => ")
        if arrow and path.startswith("not found"):
            raise Failure(f"'{file}' needs {name}, which this machine does not have")
        if arrow:
            found[name] = pathlib.Path(path)
    return found


def bundle(prefix: pathlib.Path, epoch: int) -> dict[str, Package]:
    """Brings along the libraries that the files of a tree need and other machines may lack. Returns {path below prefix: its package}."""
    wanted: dict[str, pathlib.Path] = {}
    users = []
    for file in files_below(prefix):
        found = {name: path for name, path in (needs(file) if is_elf(file) else {}).items() if foreign(name, path, prefix)}
        wanted |= found
        users += [file] if found else []
    if not users:
        return {}
    new_names = {name: re.sub(r"\.so", f"-{sha256(path.resolve())[:8]}.so", name, count=1) for name, path in wanted.items()}
    origins, packages = packages_of(wanted.values()), {}
    for name, path in sorted(wanted.items()):
        package = packages[f"{FOLDER}/{new_names[name]}"] = origins[path]
        file = prefix / FOLDER / new_names[name]
        copy(path.resolve(), file, epoch)
        file.chmod(0o755)
        run("patchelf", "--set-soname", new_names[name], file)
        notice = prefix / "share/doc/thalweg/licences" / f"{package.source}.txt"
        if not notice.exists():
            copy(package.notice.resolve(), notice, epoch)
            notice.chmod(0o644)
    copies = [prefix / name for name in packages]
    # A call of its own for the run paths: patchelf 0.14 confuses the strings of two changes.
    run("patchelf", *(word for pair in new_names.items() for word in ("--replace-needed", *pair)), *copies, *users)
    run("patchelf", "--set-rpath", "$ORIGIN", *copies)
    for file in users:
        present = run("patchelf", "--print-rpath", file).strip()
        place = "$ORIGIN/" + os.path.relpath(prefix / FOLDER, file.parent)
        run("patchelf", "--set-rpath", ":".join(filter(None, [place, present])), file)
    for file in [*copies, *users]:
        os.utime(file, (epoch, epoch))
    for file in users:
        outside = [name for name, path in needs(file).items() if foreign(name, path, prefix)]
        if outside:
            raise Failure(f"'{file}' still takes {', '.join(outside)} from this machine")
    return packages


def foreign(name: str, path: pathlib.Path, prefix: pathlib.Path) -> bool:
    """Returns whether a library is neither the tree's own nor on every machine."""
    return not EVERYWHERE.match(name) and prefix not in path.parents
