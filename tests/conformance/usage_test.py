# How thalweg-conformance is called, and what it says when it cannot run.
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from kit import BINARY_DIR, KIT, run

SOURCE_DIR = os.environ["THALWEG_SOURCE_DIR"]
HEALTHY = os.path.join(BINARY_DIR, "tests", "mutants", "libhealthy.so")


def call(*args, **kwargs):
    return subprocess.run([KIT, *args], capture_output=True, text=True, **kwargs)


class UsageTest(unittest.TestCase):
    def test_a_file_that_is_not_there_cannot_be_checked(self):
        done = call("/nowhere/libnone.so")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/libnone.so", done.stderr)

    def test_unknown_options_levels_and_rules_are_refused(self):
        for args in (["--what"], ["--level", "9", HEALTHY], ["--rule", "999", HEALTHY], ["--limit", "soon", HEALTHY], ["--setting", "quiet", HEALTHY], []):
            self.assertEqual(call(*args).returncode, 2, args)

    def test_a_file_that_is_no_library_breaks_rule_1(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as f:
            f.write(b"\x7fELF, or so it says")
            f.flush()
            report = run(f.name)
            self.assertEqual(report.status, 1)
            self.assertIn(1, report.rules("fail"))

    def test_text_says_pass_skip_or_fail_with_a_rule(self):
        done = call(HEALTHY, "--level", "1")
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = done.stdout.splitlines()
        for line in lines[:-1]:
            self.assertRegex(line, r"^(pass|skip|fail) \d{3} ")
        self.assertIn("0 failed", lines[-1])

    def test_one_rule_can_be_checked_alone(self):
        report = run(HEALTHY, "--rule", "103")
        self.assertEqual(report.rules("pass"), [103])

    def test_the_kit_runs_from_anywhere_without_any_other_file(self):
        with tempfile.TemporaryDirectory() as folder:
            kit = shutil.copy(KIT, folder)
            shutil.copy(HEALTHY, folder)
            done = subprocess.run([kit, "libhealthy.so", "--level", "2"], capture_output=True, text=True, cwd=folder, env={})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        needed = subprocess.run(["readelf", "-d", KIT], capture_output=True, text=True).stdout
        self.assertNotIn("libthalweg", needed)

    def test_every_rule_stands_in_the_readme(self):
        with open(os.path.join(SOURCE_DIR, "tools/conformance/README.md"), encoding="utf-8") as f:
            written = dict(re.findall(r"^\| (\d{3}) \| ([^|]*[^| ]) *\|", f.read(), re.MULTILINE))
        listed = dict(re.findall(r"^(\d{3}) (.*) \(thalweg/plugin/", call("--list").stdout, re.MULTILINE))
        self.assertEqual(written, listed)


if __name__ == "__main__":
    sys.exit(unittest.main())
