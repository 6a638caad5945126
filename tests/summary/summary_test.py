"""The end of `./run test`, over records as CTest writes them."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("summary.py")


def case(name, status, output=""):
    failure = '<failure message=""/>' if status == "fail" else ""
    return f'<testcase name="{name}" classname="{name}" time="1" status="{status}">{failure}<system-out>{output}</system-out></testcase>'


class Summary(unittest.TestCase):
    def end_of(self, text):
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "junit.xml"
            if text is not None:
                record.write_text(text)
            return subprocess.run([sys.executable, SCRIPT, record], capture_output=True, text=True, check=False)

    def of_cases(self, *cases):
        failed = sum('status="fail"' in one for one in cases)
        skipped = sum('status="notrun"' in one for one in cases)
        done = self.end_of(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="Linux"\n\ttests="{len(cases)}"\n\tfailures="{failed}"\n'
                           f'\tdisabled="0"\n\tskipped="{skipped}"\n\thostname=""\n>{"".join(cases)}</testsuite>')
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_without_failures_it_is_one_line(self):
        self.assertEqual(self.of_cases(case("a", "run"), case("b", "notrun"), case("c", "run")), "2 passed, 0 failed, 1 skipped\n")

    def test_a_failed_test_is_shown_with_its_last_lines(self):
        output = "\n".join(f"line {i}" for i in range(40)) + "\nexpected 1 &lt; 2\n"
        said = self.of_cases(case("a", "run", "quiet"), case("b", "fail", output), case("c", "fail"))
        self.assertIn("--- b, its last lines:\nline 16\n", said)
        self.assertIn("line 39\nexpected 1 < 2\n--- c, its last lines:\nit printed nothing\n1 passed, 2 failed, 0 skipped\n", said)
        self.assertNotIn("quiet", said)

    def test_of_many_the_first_are_shown_and_the_rest_counted(self):
        said = self.of_cases(*(case(f"t{i}", "fail", "no") for i in range(13)))
        self.assertEqual(said.count("its last lines"), 10)
        self.assertTrue(said.endswith("--- and 3 more failed tests\n0 passed, 13 failed, 0 skipped\n"), said)

    def test_a_record_that_cannot_be_read_is_a_failure(self):
        for text in (None, "<testsuite", '<testsuite tests="many"></testsuite>'):
            done = self.end_of(text)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("cannot be read, so nothing was counted", done.stderr)


if __name__ == "__main__":
    unittest.main()
