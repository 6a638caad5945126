"""What cmake/help_pages.py reads out of help, and what it refuses. Usage: FILE HELP_PAGES_PY"""

import importlib.util
import sys
import unittest

spec = importlib.util.spec_from_file_location("help_pages", sys.argv.pop(1))
help_pages = importlib.util.module_from_spec(spec)
sys.modules["help_pages"] = help_pages
spec.loader.exec_module(help_pages)

HELP = """Do a thing
Usage: fmha thing [OPTIONS] [CASES...]

Positionals:
  CASES TEXT ...              What to do it to

Options:
  -h,--help                   Print this help message and exit
  --form TEXT:{round,square}=round
                              Its form,
                              in a word
  --deep                      .hidden

Example:
  fmha thing --form square
"""


class Pages(unittest.TestCase):
    def test_everything_is_read(self):
        page = help_pages.parse(HELP)
        self.assertEqual((page.summary, page.usage), ("Do a thing", "fmha thing [OPTIONS] [CASES...]"))
        self.assertEqual(page.sections["Positionals"][0].names, ["CASES"])
        self.assertEqual(page.sections["Positionals"][0].value, "TEXT ...")
        short, form, deep = page.sections["Options"]
        self.assertEqual((short.names, short.value, short.text), (["-h", "--help"], "", "Print this help message and exit"))
        self.assertEqual((form.names, form.choices, form.text), (["--form"], ["round", "square"], "Its form, in a word"))
        self.assertEqual((deep.names, deep.value), (["--deep"], ""))
        self.assertEqual(page.example, ["  fmha thing --form square"])

    def test_a_page_has_every_option_and_hides_no_line(self):
        text = help_pages.man_page("fmha-thing", help_pages.parse(HELP), "fmha 1", ["fmha"])
        for part in ("\\fB\\-\\-form\\fR \\fITEXT:{round,square}=round\\fR", "\\&.hidden", ".TH FMHA-THING 1", "fmha thing \\-\\-form square"):
            self.assertIn(part, text)

    def test_completion(self):
        pages = {"": help_pages.parse(HELP.replace("Positionals", "Subcommands")), "thing": help_pages.parse(HELP)}
        text = help_pages.completion(pages)
        self.assertIn('--form) words="round square"', text)
        self.assertIn('thing) words="--help --form --deep"', text)

    def test_what_is_no_help_is_refused(self):
        for broken in (HELP.replace("Usage:", "Use:"), HELP.replace("Options:\n", "Options:\n" + " " * 30 + "of nothing\n"),
                       HELP.replace("  --deep", "--deep"), HELP.replace("Usage: fmha thing [OPTIONS] [CASES...]\n", "")):
            with self.assertRaises(help_pages.Unreadable):
                help_pages.parse(broken)


if __name__ == "__main__":
    unittest.main()
