#!/usr/bin/env python3
"""Makes the npm package: a folder, and the tarball that `npm install` takes.

usage: make_package.py [--build BUILD] --out FOLDER

The addon in it is compiled for this machine, against Node-API, which every later version of Node.js keeps; it finds libthalweg.so on the
path of the system's loader."""
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "generate"))
import package  # noqa: E402

HEADERS = ["/usr/include/node", "/usr/include/nodejs/src"]


def main():
    found = package.arguments(__doc__.split("\n", maxsplit=1)[0])
    folder, archive = found.out / "package", found.out / f"thalweg-{package.VERSION}.tgz"
    package.generate("node", found.build, folder)
    package.copy(here, folder, ["lib/*.js", "lib/*.ts", "src/*", "examples", "package.json", "README.md"])
    headers = next((h for h in HEADERS if pathlib.Path(h, "node_api.h").exists()), None)
    if not headers:
        sys.exit(f"make_package: node_api.h is in none of {', '.join(HEADERS)}; run tools/setup --languages")
    addon, sources = folder / "build/thalweg.node", [folder / "src/low.c", folder / "src/callbacks.c", folder / "src/support.h"]
    addon.parent.mkdir(exist_ok=True)
    if not addon.exists() or any(s.stat().st_mtime > addon.stat().st_mtime for s in sources):
        subprocess.run(["cc", "-O1", "-g0", "-shared", "-fPIC", "-std=gnu11", "-Wall", "-Werror", "-fvisibility=hidden", f"-I{headers}",
                        f"-I{package.ROOT}/c_api/include", *sources[:2], f"-L{found.build}/lib", "-lthalweg", "-pthread", "-Wl,-z,now", "-o", addon], check=True)
    package.tar_archive(archive, folder, "package/")
    print(archive)


if __name__ == "__main__":
    main()
