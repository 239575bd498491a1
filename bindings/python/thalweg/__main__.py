"""`python -m thalweg`: runs the thalweg command that is installed with the library."""
import os
import pathlib
import sys

from . import _library


def main() -> None:
    program = pathlib.Path(_library.path).absolute().parent.parent / "bin" / "thalweg"
    if not program.exists():
        sys.exit(f"thalweg: no program at {program}")
    if sys.executable:
        os.environ.setdefault("THALWEG_PYTHON", sys.executable)  # for `thalweg bench model`, which runs this package
    os.execv(program, ["thalweg", *sys.argv[1:]])


if __name__ == "__main__":
    main()
