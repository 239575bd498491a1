"""Shared by the makers of packages: commands, the facts of a release, archives whose bytes depend only on names and contents."""
import dataclasses
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Iterable

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Failure(Exception):
    """A sentence for the user: the program prints it and ends."""


def run(*command, **options) -> str:
    """Runs a command and returns its output. Raises Failure with the command's own words if it fails."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    except FileNotFoundError:
        raise Failure(f"{command[0]} is not installed; tools/setup --release installs what a release needs") from None
    if done.returncode:
        raise Failure(f"{' '.join(str(word) for word in command)}: status {done.returncode}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


@dataclasses.dataclass
class Release:
    """The facts that all packages of a release share.   epoch: seconds since 1970, the time of every file.   level: of compression, 0 to 9."""
    version: str
    epoch: int
    level: int
    out: pathlib.Path
    maintainer: str
    machine: str = os.uname().machine

    @property
    def soname(self) -> str:
        return f"libthalweg.so.{self.version.partition('.')[0]}"


def version_of(prefix: pathlib.Path) -> str:
    """Returns the version of an installed tree."""
    file = prefix / "lib/cmake/Thalweg/ThalwegConfigVersion.cmake"
    found = re.search(r'set\(PACKAGE_VERSION "([\d.]+)"\)', file.read_text()) if file.exists() else None
    if not found:
        raise Failure(f"'{prefix}' is no installed Thalweg: {file.relative_to(prefix)} gives no version; make one with cmake --install")
    return found[1]


def epoch() -> int:
    """Returns SOURCE_DATE_EPOCH, or the time of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given and not given.isdigit():
        raise Failure(f"SOURCE_DATE_EPOCH is '{given}'; it is a number of seconds since 1970")
    if given:
        return int(given)
    done = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure("the files of a release have the time of its commit, and this tree has no git history; set SOURCE_DATE_EPOCH")
    return int(done.stdout)


def sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_below(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the files and symbolic links below a folder, by name."""
    return sorted(p for p in folder.rglob("*") if p.is_symlink() or p.is_file())


def is_elf(path: pathlib.Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def mode_of(path: pathlib.Path) -> int:
    """Returns the mode that a packaged file has: it depends on the file's kind, not on the umask of the builder."""
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644


def copy(source: pathlib.Path, target: pathlib.Path, when: int) -> None:
    """Copies a file or a symbolic link, with the mode and time of a release."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target, follow_symlinks=False)
    if not target.is_symlink():
        target.chmod(mode_of(source))
        os.utime(target, (when, when))


def tar(root: pathlib.Path, top: str, when: int, owners: Iterable[tuple[str, int]] = (), modes: Iterable[tuple[str, int]] = ()) -> bytes:
    """Returns a tar archive of all files and folders below `root`, as `top`/path, sorted, owned by root.
    owners, modes: exceptions, by path below `root`."""
    owner, mode = dict(owners), dict(modes)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            info = tarfile.TarInfo(top + name)
            info.mtime = when
            info.uid = info.gid = owner.get(name, 0)
            if path.is_symlink():
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
                archive.addfile(info)
            elif path.is_dir():
                info.type, info.mode = tarfile.DIRTYPE, mode.get(name, 0o755)
                archive.addfile(info)
            else:
                info.mode, info.size = mode.get(name, mode_of(path)), path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(info, file)
    return buffer.getvalue()


def packed(data: bytes, level: int) -> bytes:
    """Returns data compressed by gzip, without a name and a time."""
    return gzip.compress(data, level, mtime=0)


def components() -> dict:
    return tomllib.loads((HERE / "components.toml").read_text())
