# For any file, the kit answers within its time limit, with the right exit status and complete JSON, and leaves nothing behind.
import glob
import os
import shutil
import sys
import tempfile
import unittest

from kit import BINARY_DIR, run

SOURCE_DIR = os.environ["THALWEG_SOURCE_DIR"]


def stranger(act):
    return os.path.join(BINARY_DIR, "tests", "strangers", f"lib{act}.so")


# Returns the processes that have the file mapped.
def users(file):
    def maps(path):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    return [path for path in glob.glob("/proc/[0-9]*/maps") if file in maps(path)]


class StrangersTest(unittest.TestCase):
    def check(self, file, status, rule=None, why="", options=()):
        with tempfile.TemporaryDirectory() as folder:
            report = run(file, "--level", "0", "--limit", "5", *options, env={"TMPDIR": folder})
            self.assertEqual(os.listdir(folder), [], "temporary files are left")
        self.assertEqual(report.status, status, report.told() or report.errors)
        if rule is not None:
            told = [r["why"] for r in report.json["results"] if r["rule"] == rule and r["result"] == "fail"]
            self.assertTrue(told, report.told())
            self.assertIn(why, told[0])
        self.assertEqual(users(file), [], "processes are left")
        return report

    def test_a_plugin_that_ends_the_process_is_named_with_the_status(self):
        self.check(stranger("exits"), 1, 7, "ended with status 0")

    def test_an_exit_between_two_checks_is_no_end_of_the_checks(self):
        report = self.check(stranger("exits"), 1, 7, "ended with status 0", ["--level", "1", "--rule", "103"])
        self.assertEqual(report.json["passed"], 0)

    def test_a_plugin_that_aborts_is_named_with_the_signal(self):
        self.check(stranger("aborts"), 1, 7, "SIGABRT")

    def test_a_stack_that_overflows_is_named_with_the_signal(self):
        self.check(stranger("overflows"), 1, 7, "SIGSEGV")

    def test_one_that_loops_for_ever_is_given_up_after_two_checks(self):
        report = self.check(stranger("loops"), 1, 7, "no end within 0.5 seconds", ["--limit", "0.5"])
        self.assertEqual(len(report.told()), 2)
        self.assertIn("what follows is not tried", report.told()[1])

    def test_what_a_plugin_prints_is_not_in_the_report(self):
        report = self.check(stranger("talks"), 0, options=["--rule", "7"])
        self.assertIn("{ line 499999", report.errors)

    def test_one_that_forks_leaves_no_process_and_no_second_report(self):
        report = self.check(stranger("forks"), 0, options=["--rule", "7"])
        keys = [(r["rule"], r["host"], r["subject"]) for r in report.json["results"]]
        self.assertEqual(len(keys), len(set(keys)))

    def test_one_that_closes_the_standard_files_can_be_checked_all_the_same(self):
        self.check(stranger("closes"), 0)

    def test_one_that_closes_the_kits_own_files_breaks_rule_7(self):
        self.check(stranger("closes_all"), 1, 7, "in the middle of the check")

    def test_one_that_removes_its_file_is_told_so(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(shutil.copy(stranger("removes"), folder), 1, 1, "the file is gone")

    def test_a_plugin_of_another_epoch_is_told_which_one_the_kit_checks(self):
        self.check(os.path.join(SOURCE_DIR, "tests/abi/archive/epoch1/libtoy.so"), 1, 6, "epoch is 1; this kit checks epoch 3")

    def test_a_text_file_breaks_rule_1_and_nothing_else_is_tried(self):
        report = self.check(os.path.join(SOURCE_DIR, "README.md"), 1, 1)
        self.assertEqual(len(report.json["results"]), 1)

    def test_a_folder_and_a_file_that_is_not_there_cannot_be_checked(self):
        for path in (SOURCE_DIR, "/dev/null", "/nowhere/libnone.so"):
            report = run(path)
            self.assertEqual(report.status, 2)
            self.assertIn(path, report.errors)
            self.assertIn(path, report.json["error"])

    def test_unknown_options_are_named_in_json_too(self):
        report = run(stranger("talks"), "--wat")
        self.assertEqual(report.status, 2)
        self.assertIn("--wat", report.json["error"])


if __name__ == "__main__":
    sys.exit(unittest.main())
