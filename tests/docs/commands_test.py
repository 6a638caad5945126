"""What commands.py must notice: a document that is wrong in one way each, and those that are right."""

import io
import pathlib
import stat
import tempfile
import unittest
from contextlib import redirect_stdout

import commands


class Documents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.fmha = self.root / "program"
        self.fmha.write_text('#!/bin/sh\necho "say $*: 41.5 s, 7 of 9"\nexit "${1#fail}"\n')
        self.fmha.chmod(self.fmha.stat().st_mode | stat.S_IXUSR)

    def tearDown(self):
        self.folder.cleanup()

    def check(self, text):
        """Failures and output of a document."""
        document = self.root / "README.md"
        document.write_text(text, encoding="utf-8")
        out = io.StringIO()
        with redirect_stdout(out):
            failures = commands.check([document], self.root, self.fmha)
        return failures, out.getvalue()

    def block(self, body, mark=""):
        return self.check(f"text\n\n{mark}\n```\n{body}\n```\n")

    def test_numbers_are_masked_unless_exact(self):
        written = "$ fmha 0\nsay 0: 3.25 s, 1 of 2"
        self.assertEqual(self.block(written)[0], 0)
        self.assertEqual(self.block(written, "<!-- commands: exact -->")[0], 1)
        self.assertEqual(self.block("$ fmha 0\nsay 0: 41.5 s, 7 of 9", "<!-- commands: exact -->")[0], 0)

    def test_other_words_fail(self):
        failures, out = self.block("$ fmha 0\nsay 0: 41.5 s, 7 from 9")
        self.assertEqual(failures, 1)
        self.assertIn("FAILED README.md:5: fmha 0", out)
        self.assertIn("-say N: N s, N from N\n+say N: N s, N of N", out)

    def test_missing_and_additional_lines_fail(self):
        self.assertEqual(self.block("$ fmha 0; fmha 0\nsay 0: 41.5 s, 7 of 9")[0], 1)
        self.assertEqual(self.block("$ fmha 0\nsay 0: 41.5 s, 7 of 9\nsay 0: 41.5 s, 7 of 9")[0], 1)

    def test_dots_stand_for_lines_and_for_text(self):
        self.assertEqual(self.block("$ fmha 0; fmha 0; fmha 1\nsay 0: 1 s, 7 of 9\n…\nsay 1: … of 9")[0], 0)
        self.assertEqual(self.block("$ fmha 0; fmha 0; fmha 1\nsay 0: 1 s, 7 of 9\n…\nsay 1: … of ten")[0], 1)

    def test_exit_codes(self):
        self.assertEqual(self.block("$ fmha 0")[0], 0)
        self.assertEqual(self.block("$ fmha fail1")[0], 1)
        self.assertEqual(self.block("$ fmha fail1\nsay fail1: 1 s, 7 of 9")[0], 0)
        self.assertEqual(self.block("$ fmha fail2\nsay fail2: 1 s, 7 of 9")[0], 1)
        self.assertEqual(self.block("$ no-such-program\n…")[0], 1)

    def test_a_shown_file_is_there_for_the_next_command(self):
        self.assertEqual(self.block("$ cat a.json\n{1}\n$ test \"$(cat a.json)\" = '{1}'")[0], 0)

    def test_a_setup_file_is_copied(self):
        self.assertEqual(self.block("$ test -f my_kernel.py", "<!-- commands: setup my_kernel.py -->")[0], 0)
        self.assertEqual(self.block("$ test -f my_kernel.py")[0], 1)

    def test_commands_that_are_not_run_are_counted_with_their_reason(self):
        text = ("<!-- commands: not run, needs a GPU -->\n```\n$ fmha fail2\n$ fmha fail3\n```\n"
                "then\n```\n$ fmha 0\n```\n")
        failures, out = self.check(text)
        self.assertEqual(failures, 0)
        self.assertIn("not run README.md:3: fmha fail2\n    needs a GPU\n", out)
        self.assertIn("1 commands run, 0 not as written, 2 not run", out)

    def test_a_document_without_commands_is_red(self):
        self.assertEqual(self.check("text\n")[0], 1)
        self.assertEqual(self.block("$ fmha 0", "<!-- commands: not run, needs a GPU -->")[0], 1)

    def test_an_unknown_mark_is_an_error(self):
        with self.assertRaises(commands.Mistake):
            self.block("$ fmha 0", "<!-- commands: skip -->")

    def test_continued_lines_are_one_command(self):
        self.assertEqual(self.block("$ fmha \\\n0\nsay 0: 1 s, 7 of 9")[0], 0)


if __name__ == "__main__":
    unittest.main()
