"""What libthalweg.so exports is what c_api/symbols.txt lists and what the headers declare: nothing more, nothing less."""
import os
import pathlib
import re
import subprocess
import sys

library = sys.argv[1]
c_api = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "c_api"

listed = (c_api / "symbols.txt").read_text().split()
declared = set()
for header in (c_api / "include/thalweg").glob("*.h"):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    declared.update(re.search(r"(tw_\w+)\(", d).group(1) for d in re.findall(r"TW_EXPORT\s+([^;]*\([^;]*);", text))
lines = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], check=True, capture_output=True,
                       text=True).stdout.splitlines()
# The version node itself shows as an absolute symbol.
exported = {line.split()[-1] for line in lines if line.split()[-2] != "A"}
wrong_version = sorted(s for s in exported if not s.endswith("@@THALWEG_0.1"))
exported = {s.split("@")[0] for s in exported}

failures = []


def compare(what, have, of, want):
    failures.extend(f"{what} but not {of}: {name}" for name in sorted(set(have) - set(want)))


compare("exported", exported, "in c_api/symbols.txt", listed)
compare("in c_api/symbols.txt", listed, "exported", exported)
compare("declared in a header", declared, "in c_api/symbols.txt", listed)
compare("in c_api/symbols.txt", listed, "declared in a header", declared)
failures.extend(f"exported without the version node: {name}" for name in wrong_version)
if listed != sorted(set(listed)):
    failures.append("c_api/symbols.txt is not sorted, or names something twice")

needed = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
for name in re.findall(r"NEEDED.*\[(.*)\]", needed):
    if not re.match(r"(ld-linux|libc\.|libm\.|libstdc\+\+|libgcc_s|libdl|libpthread|lib[atu]san|libubsan|linux-vdso)", name):
        failures.append(f"the library needs {name}")

print("\n".join(failures) or f"{len(exported)} symbols, as listed")
sys.exit(bool(failures))
