"""Every plugin exports exactly its entry symbol and imports no symbol of the runtime."""
import subprocess
import sys

failures = 0
for path in sys.argv[1:]:
    symbols = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout.splitlines()
    exported = {line.split()[-1] for line in symbols if len(line.split()) == 3 and line.split()[1] in "TDBRVWu"}
    ours = {line.split()[-1] for line in symbols if " U " in line and (" tw_" in line or "thalweg" in line)}
    # A version script may show its node as an absolute symbol; that is no entry point.
    good = exported == {"tw_plugin_query_v0"} and not ours
    print(("passed  " if good else "FAILED  ") + path + ("" if good else f": exports {sorted(exported)}, imports {sorted(ours)}"))
    failures += not good
sys.exit(failures > 0 or len(sys.argv) < 3)
