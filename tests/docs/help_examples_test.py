"""What help_examples.py must notice: calls that are wrong in one way each, in help and in a document, and those that are right."""

import io
import pathlib
import stat
import tempfile
import unittest
from contextlib import redirect_stdout

import help_examples

PROGRAM = """#!/bin/sh
case "$*" in
  --help) cat "$(dirname "$0")/all.txt" ;;
  "time --help") cat "$(dirname "$0")/time.txt" ;;
  "history --help") cat "$(dirname "$0")/history.txt" ;;
  "verify fwd/there"*) echo "fwd/there[hdim=64,dtype=fp16]@1" ;;
  *) echo "no case of that name" >&2; exit 2 ;;
esac
"""
ALL = "About.\nUsage: fmha [OPTIONS]\n\nSubcommands:\n  time                        Times\n  history                     Tells\n"
TIME = ("About.\nUsage: fmha time [OPTIONS]\n\nOptions:\n  --shape TEXT                A shape\n"
        "  --tier TEXT:{smoke,full}=smoke\n                              A tier\n\nExample:\n")


class Examples(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.fmha = self.root / "program"
        self.fmha.write_text(PROGRAM)
        self.fmha.chmod(self.fmha.stat().st_mode | stat.S_IXUSR)
        (self.root / "all.txt").write_text(ALL)
        (self.root / "cases/fwd").mkdir(parents=True)
        (self.root / "cases/fwd/there.json").touch()

    def tearDown(self):
        self.folder.cleanup()

    def check(self, example="", document="", history=""):
        """Failures and output for examples of `fmha time --help` and `fmha history --help`, and a document."""
        for name, text in (("time", example), ("history", history)):
            (self.root / f"{name}.txt").write_text(TIME + "".join(f"  {line}\n" for line in text.split("\n")))
        (self.root / "README.md").write_text(document)
        out = io.StringIO()
        with redirect_stdout(out):
            failures = help_examples.check(self.fmha, self.root, [self.root / "README.md"])
        return failures, out.getvalue()

    def test_right_calls(self):
        example = "echo 1 | fmha time --shape a --tier full fwd/there    # a remark\nfmha time cases/fwd/there.json ~/elsewhere/x.json\npython3 mine.py --any"
        failures, out = self.check(example)
        self.assertEqual((failures, out), (0, "2 calls, 0 mistakes\n"))

    def test_each_mistake(self):
        for call, sentence in (("fmha time --shpae a", "--shpae is no option"), ("fmha time --tier ful", "--tier does not take 'ful'"),
                               ("fmha time --tier", "--tier does not take ''"), ("fmha time fwd/gone", "no case of that name"),
                               ("fmha time cases/fwd/gone.json", "there is no cases/fwd/gone.json"), ("fmha tim", "tim is no subcommand")):
            with self.subTest(call):
                failures, out = self.check(f"fmha time\n{call}")
                self.assertEqual(failures, 1)
                self.assertIn(sentence, out)
                failures, out = self.check("fmha time", f"text\n\n    {call}\n\n<!-- commands: not run, a reason -->\n```\n$ {call}\n```\n")
                self.assertEqual(failures, 2)
                self.assertIn("README.md", out)

    def test_names_of_reports(self):
        right = "fmha history 'fwd/there[hdim=64,dtype=fp16]@1'\nfmha history 'fwd/there[hdim=64'"
        self.assertEqual(self.check("fmha time 'fwd/there[dtype=fp16]'", history=right), (0, "3 calls, 0 mistakes\n"))
        failures, out = self.check(history="fmha history 'fwd/there[dtype=fp16]@1'")
        self.assertEqual(failures, 1)
        self.assertIn("reports print fwd/there[hdim=64,dtype=fp16]@1, which fwd/there[dtype=fp16]@1 is no part of", out)

    def test_lines_that_commands_py_runs_are_left_to_it(self):
        self.assertEqual(self.check("fmha time", "```\n$ fmha gone\n```\n")[0], 0)

    def test_nothing_found_is_a_failure(self):
        self.assertEqual(self.check("python3 mine.py")[0], 1)


if __name__ == "__main__":
    unittest.main()
