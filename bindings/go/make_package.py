#!/usr/bin/env python3
"""Makes the Go module: a folder, and the zip file of a module proxy.

usage: make_package.py [--build BUILD] --out FOLDER

FOLDER/module is the module, to be used by a `replace` line of go.mod. FOLDER/proxy is a module proxy of this one module:
GOPROXY=file://FOLDER/proxy GONOSUMDB=thalweg.org go get thalweg.org/go@v0.1.0."""
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "generate"))
import package  # noqa: E402

MODULE, TAG = "thalweg.org/go", f"v{package.VERSION}"


def main():
    found = package.arguments(__doc__.split("\n", maxsplit=1)[0])
    module, versions = found.out / "module", found.out / "proxy" / MODULE / "@v"
    package.generate("go", found.build, module)
    package.copy(here, module, ["*.go", "low/*.go", "examples", "go.mod", "README.md"])
    versions.mkdir(parents=True, exist_ok=True)
    package.zip_archive(versions / f"{TAG}.zip", module, f"{MODULE}@{TAG}/")
    (versions / f"{TAG}.mod").write_text((here / "go.mod").read_text())
    (versions / f"{TAG}.info").write_text(f'{{"Version": "{TAG}", "Time": "2026-01-01T00:00:00Z"}}\n')
    (versions / "list").write_text(TAG + "\n")
    print(versions / f"{TAG}.zip")


if __name__ == "__main__":
    main()
