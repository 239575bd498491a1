#!/usr/bin/env python3
"""Makes the jar: classes, sources' documentation in it, and the native library with libthalweg.so and its plugins.

usage: make_package.py [--build BUILD] --out FOLDER

A program needs this jar alone. The natives are those of this machine's architecture."""
import os
import pathlib
import shutil
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "generate"))
import package  # noqa: E402


def natives(build, folder, out):
    """The native library, and what it needs, in the layout in which the library finds its plugins."""
    out.mkdir(parents=True, exist_ok=True)
    home = pathlib.Path(os.environ.get("JAVA_HOME") or pathlib.Path(shutil.which("javac")).resolve().parent.parent)
    library, sources = out / "libthalweg_java.so", [folder / "native/low.c", folder / "native/callbacks.c"]
    if not library.exists() or any(s.stat().st_mtime > library.stat().st_mtime for s in sources):
        subprocess.run(["cc", "-O1", "-g0", "-shared", "-fPIC", "-std=gnu11", "-Wall", "-Werror", f"-I{home}/include", f"-I{home}/include/linux",
                        f"-I{package.ROOT}/c_api/include", *sources, f"-L{build}/lib", "-lthalweg", "-Wl,-rpath,$ORIGIN", "-o", library], check=True)
    names = ["libthalweg_java.so", *package.natives(build, out)]
    (out / "files.txt").write_text("".join(name + "\n" for name in names))


def main():
    found = package.arguments(__doc__.split("\n", maxsplit=1)[0])
    folder, classes, archive = found.out / "package", found.out / "classes", found.out / f"thalweg-{package.VERSION}.jar"
    package.generate("java", found.build, folder)
    package.copy(here, folder, ["src", "native", "examples", "README.md"])
    sources = sorted((folder / "src").rglob("*.java"))
    stamp = found.out / "compiled"
    if not stamp.exists() or any(s.stat().st_mtime > stamp.stat().st_mtime for s in sources):
        shutil.rmtree(classes, ignore_errors=True)
        subprocess.run(["javac", "--release", "17", "-Xlint:all", "-Werror", "-encoding", "UTF-8", "-d", classes, *sources], check=True)
        stamp.touch()
    natives(found.build, folder, classes / "org/thalweg/natives")
    shutil.copyfile(package.ROOT / "LICENSE", classes / "LICENSE")
    (classes / "META-INF").mkdir(exist_ok=True)
    (classes / "META-INF/MANIFEST.MF").write_text(f"Manifest-Version: 1.0\nAutomatic-Module-Name: org.thalweg\nImplementation-Version: {package.VERSION}\n\n")
    files = sorted(package.files_of(classes), key=lambda p: (p.name != "MANIFEST.MF", p))
    package.zip_archive(archive, classes, "", files)
    print(archive)


if __name__ == "__main__":
    main()
