#!/usr/bin/env python3
"""Makes the R package: a folder, and the source tarball that R CMD INSTALL takes.

usage: make_package.py [--build BUILD] --out FOLDER

R CMD INSTALL compiles it against the libthalweg that pkg-config names."""
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "generate"))
import package  # noqa: E402


def main():
    found = package.arguments(__doc__.split("\n", maxsplit=1)[0])
    folder, archive = found.out / "package", found.out / f"thalweg_{package.VERSION}.tar.gz"
    package.generate("r", found.build, folder)
    package.copy(here, folder, ["src/*", "R/*.R", "examples", "DESCRIPTION", "NAMESPACE", "README.md"])
    package.tar_archive(archive, folder, "thalweg/")
    print(archive)


if __name__ == "__main__":
    main()
