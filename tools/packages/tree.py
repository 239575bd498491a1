"""The tree that all packages are made of: an installed Thalweg, stripped, with equal modes and times wherever it was built."""
import os
import pathlib
import re
import shutil

from common import ROOT, Failure, files_below, is_elf, mode_of, run


def build(folder: pathlib.Path) -> None:
    """Makes the build of a release: preset release, without tests."""
    run(ROOT / "tools/setup")
    run("cmake", "--preset", "release", "-B", folder, "-DTHALWEG_BUILD_TESTS=OFF", cwd=ROOT)
    run("cmake", "--build", folder, "--parallel", str(os.cpu_count() or 1))


def install(folder: pathlib.Path, prefix: pathlib.Path) -> list[pathlib.Path]:
    """Installs a build. Returns the folders of its sources and objects."""
    cache = folder / "CMakeCache.txt"
    if not cache.exists():
        raise Failure(f"'{folder}' is no build folder; it has no CMakeCache.txt")
    run("cmake", "--install", folder, "--prefix", prefix)
    home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read_text(), re.MULTILINE)[1]
    return [pathlib.Path(home), folder.resolve()]


def copy_tree(source: pathlib.Path, prefix: pathlib.Path) -> None:
    if not (source / "lib/libthalweg.so").exists():
        raise Failure(f"'{source}' is no installed Thalweg: it has no lib/libthalweg.so")
    shutil.copytree(source, prefix, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))


def settle(prefix: pathlib.Path, epoch: int) -> None:
    """Removes what differs between builders and what no user needs: symbols, umask, times. Refuses a tree that names its builder's folders."""
    plain = [file for file in files_below(prefix) if not file.is_symlink()]
    for file in plain:
        file.chmod(mode_of(file) | 0o200)
        if file.suffix == ".a":
            run("strip", "--strip-debug", "--enable-deterministic-archives", file)
        elif is_elf(file):
            run("strip", "--strip-unneeded", "--remove-section=.comment", file)
    for file in plain:
        file.chmod(mode_of(file))
        os.utime(file, (epoch, epoch))


def traces(prefix: pathlib.Path, folders: list[pathlib.Path]) -> list[str]:
    """Returns a sentence for each file of the tree that contains the path of one of the folders."""
    found = []
    for file in files_below(prefix):
        if file.is_symlink():
            continue
        data = file.read_bytes()
        found += [f"{file.relative_to(prefix)} names '{folder}'" for folder in folders if str(folder).encode() + b"/" in data]
    return found
