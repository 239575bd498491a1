# Tests the arguments of thalweg-conformance, and its messages when it cannot run.
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from kit import BINARY_DIR, KIT, run

SOURCE_DIR = os.environ["THALWEG_SOURCE_DIR"]
REFUSES_ALL = os.path.join(BINARY_DIR, "tests", "mutants", "librefuses_all_shapes.so")
BROKEN = os.path.join(BINARY_DIR, "tests", "mutants", "libodd_element.so")
HEALTHY = os.path.join(BINARY_DIR, "tests", "mutants", "libhealthy.so")
COMPILER = os.path.join(BINARY_DIR, "tests", "mutants", "libhealthy_compiler.so")
HALF = os.path.join(SOURCE_DIR, "tests/conformance/mutants/half.cases.json")


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
            self.assertRegex(line, r"^(pass|none|skip|fail) \d{3} ")
        self.assertIn("0 failed", lines[-1])

    def test_a_line_says_on_how_many_kernels_a_check_ran(self):
        done = call(HEALTHY, "--rule", "206")
        self.assertIn("pass 206 2 kernels: a kernel writes to its outputs and scratch, and nowhere else, ran 2 of 2 kernels", done.stdout)

    def test_a_level_of_which_something_was_skipped_is_not_kept(self):
        done = call(REFUSES_ALL, "--rule", "206")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ran 1 of 2 kernels; not on 'Half(float) @CPU' (op 'Half': Half(float [2, 3]) is refused: ", done.stdout)
        self.assertIn("is not known to keep the rules of level 5; levels not kept: 2", done.stdout)
        report = run(REFUSES_ALL, "--rule", "206")
        self.assertFalse(report.json["kept"])
        self.assertEqual([level["level"] for level in report.json["levels"] if not level["kept"]], [2])
        (result,) = [r for r in report.json["results"] if r["result"] == "skip"]
        self.assertEqual((result["ran"], result["of"], [m["what"] for m in result["missed"]]), (1, 2, ["'Half(float) @CPU'"]))

    def test_the_report_ends_with_the_cases_that_are_missing(self):
        done = call(REFUSES_ALL, "--rule", "206")
        self.assertIn("Write values that it takes and put this into '" + REFUSES_ALL.replace(".so", ".cases.json") + "'", done.stdout)
        file = json.loads(re.search(r"^\{.*^\}\}$", done.stdout, re.MULTILINE | re.DOTALL)[0])
        self.assertEqual(file, {"ops": {"Half": [{"inputs": [{"dtype": "float", "shape": [2, 3], "range": [-1, 1]}]}]}})
        self.assertEqual(run(REFUSES_ALL, "--rule", "206").json["wanted"], file["ops"])
        report = self.with_cases(HEALTHY, file, "--rule", "213")  # the file has the form that the kit reads
        self.assertEqual(report.rules("pass"), [213])

    def with_cases(self, plugin, cases, *options):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(cases if isinstance(cases, str) else json.dumps(cases))
            f.flush()
            return run(plugin, "--cases", f.name, *options)

    def test_an_authors_cases_are_tried_and_compared(self):
        self.assertIn("ran 2 of 2 cases", call(HEALTHY, "--cases", HALF, "--rule", "213").stdout)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(HALF, os.path.join(folder, "libhealthy.cases.json"))
            plugin = shutil.copy(HEALTHY, folder)
            self.assertEqual(run(plugin, "--rule", "213").rules("pass"), [213])

    def test_what_is_wrong_with_a_case_is_said(self):
        def half(**case):
            return {"ops": {"Half": [case]}}

        x = {"dtype": "float", "shape": [2], "values": [1, 2]}
        for cases, part in (
            ({"ops": {"Third": []}}, "there is no op 'Third'"),
            (half(inputs=[x | {"values": [1, 2, 3]}]), "input 0: it has 3 values; its shape [2] needs 2"),
            (half(inputs=[x | {"dtype": "real"}]), "no element type is called \"real\""),
            (half(inputs=[x], attrs={"axis": 1}), "op 'Half' has no attribute 'axis'"),
            (half(inputs=[x, x]), "case 1 of op 'Half' in"),
            (half(inputs=[x], output=[x]), "'output' has no meaning here"),
            (half(inputs=[x], outputs=[x]), "output 0: element 0 of 2 is 0.5 instead of 1"),
        ):
            report = self.with_cases(HEALTHY, cases, "--rule", "213")
            self.assertEqual((report.status, report.rules("fail")), (1, [213]), cases)
            self.assertIn(part, report.told()[0])

    def test_a_file_of_cases_that_cannot_be_read_is_refused(self):
        for cases, part in (
            ("{", "no JSON"),
            ({"cases": {}}, "'cases' has no meaning here"),
            ({"ops": []}, "'ops' is no object"),
            ({"ops": {"Half": {}}}, "write a list"),
        ):
            report = self.with_cases(HEALTHY, cases)
            self.assertEqual(report.status, 2, cases)
            self.assertIn(part, report.errors)
        self.assertIn("cannot read '/nowhere/cases.json'", run(HEALTHY, "--cases", "/nowhere/cases.json").errors)

    def test_an_authors_graphs_are_samples_for_compilers(self):
        feeds = {"a": {"dtype": "float", "shape": [3], "range": [-1, 1]}}
        nodes = [{"name": "n", "op": "Neg", "inputs": ["a"]}, {"name": "m", "op": "Add", "inputs": ["n", "a"]}]
        good = {"name": "mine", "feeds": feeds, "nodes": nodes}
        self.assertEqual(self.with_cases(COMPILER, {"graphs": [good]}, "--rule", "403").status, 0)
        wrong = {"name": "mine", "feeds": feeds, "nodes": [{"name": "n", "op": "Neg", "inputs": ["b"]}]}
        report = self.with_cases(COMPILER, {"graphs": [wrong]}, "--rule", "403")
        self.assertEqual(report.rules("fail"), [403])
        self.assertIn("graph 'mine'", report.told()[0])
        self.assertIn("neither a feed nor a node before it is called 'b'", report.told()[0])

    def test_skips_may_be_allowed(self):
        done = call(REFUSES_ALL, "--rule", "206", "--allow-skips")
        self.assertEqual(done.returncode, 0)
        self.assertIn("keeps the rules of level 5, as far as they were checked", done.stdout)

    def test_junit_has_a_suite_a_level_and_a_failure_for_what_is_not_kept(self):
        tree = xml.etree.ElementTree.fromstring(call(REFUSES_ALL, "--junit", "--level", "2").stdout)
        self.assertEqual([s.get("name") for s in tree], ["level 0", "level 1", "level 2"])
        failures = [f.get("type") for f in tree[2].iter("failure")]
        self.assertEqual((int(tree[2].get("failures")), set(failures)), (len(failures), {"skipped"}))
        self.assertEqual(tree[1].get("failures"), "0")
        allowed = xml.etree.ElementTree.fromstring(call(REFUSES_ALL, "--junit", "--level", "2", "--allow-skips").stdout)
        self.assertEqual(allowed[2].get("failures"), "0")
        (skip,) = [c.find("skipped") for c in allowed[2] if c.get("name") == "206 2 kernels"]
        self.assertIn("ran 1 of 2 kernels", skip.get("message"))
        broken = xml.etree.ElementTree.fromstring(call(BROKEN, "--junit", "--rule", "201").stdout)
        self.assertEqual({f.get("type") for f in broken.iter("failure")}, {"broken"})

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
