"""Tests ways out of a sandbox on machines that allow less: sandbox_kinds_test.py SANDBOX_TEST

Runs sandbox_test once as an unprivileged user, and once without user namespaces, so that only Landlock and the system call filter are
left. Needs root and util-linux (setpriv, unshare); without them it is skipped."""
import os
import shutil
import subprocess
import sys
import tempfile

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
TEN = "Kinds/SandboxTest.*/server:-*TimeEnds*"

if os.geteuid() != 0:
    print("skipped: only root can be another user")
    sys.exit(77)
for tool in ("setpriv", "unshare"):
    if not shutil.which(tool):
        print(f"skipped: there is no program `{tool}`")
        sys.exit(77)
TEST = sys.argv[1]


def run(command, tests):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        environment = {**os.environ, "TMPDIR": folder, "HOME": folder, "XDG_CACHE_HOME": folder + "/cache", "THALWEG_TEST_TRUST": "1"}
        done = subprocess.run([*command, TEST, f"--gtest_filter={tests}"], env=environment, capture_output=True, text=True, timeout=300)
    print(done.stdout[-4000:], done.stderr[-4000:], flush=True)
    return done


# A user namespace in which no other can be made. The user is root there, without any capability.
NO_NAMESPACES = [*NOBODY[:4], "unshare", "-Ur", "sh", "-c",
                 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"', "sh"]

as_nobody = run(NOBODY, TEN)
assert as_nobody.returncode == 0 and "SKIPPED" not in as_nobody.stdout, "as another user"
if subprocess.run([*NO_NAMESPACES, "true"], capture_output=True).returncode:
    print("not tried: without user namespaces, for they are not permitted here")
else:
    without = run(NO_NAMESPACES, TEN)
    # Nothing limits the number of threads there, so the test of that limit is skipped.
    assert without.returncode == 0 and "PASSED" in without.stdout, "without user namespaces"
    assert without.stdout.count("[  SKIPPED ]") <= 3 and "own view" not in without.stdout, "more was skipped, or there are namespaces after all"
