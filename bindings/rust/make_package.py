#!/usr/bin/env python3
"""Makes the crate: a folder, and the archive that `cargo package` would make.

usage: make_package.py [--build BUILD] --out FOLDER

FOLDER/crate is the crate, to be used as a dependency with a `path`."""
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "generate"))
import package  # noqa: E402


def main():
    found = package.arguments(__doc__.split("\n", maxsplit=1)[0])
    crate, archive = found.out / "crate", found.out / f"thalweg-{package.VERSION}.crate"
    package.generate("rust", found.build, crate)
    package.copy(here, crate, ["src", "examples", "tests", "Cargo.toml", "build.rs", "README.md"])
    package.tar_archive(archive, crate, f"thalweg-{package.VERSION}/")
    print(archive)


if __name__ == "__main__":
    main()
