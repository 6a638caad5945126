"""page_test.py HOSTILE_PAGE [markup|browser]: the page of a run whose every text is hostile runs no script but its own, refers to nothing
outside, and fits a phone and a sheet of paper.

The markup is read here (markup), and a headless browser opens the page (browser); where none is installed this part ends with 77.
"""

import base64
import hashlib
import html
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PHONE, PAPER = 390, 718  # CSS pixels: of a phone, and of A4 between margins of a centimetre
OUTSIDE = {"src", "href", "srcset", "action", "data", "poster", "background", "formaction", "srcdoc", "xlink:href"}
VOID = {"meta", "input", "rect", "line", "br", "polyline"}


class Page(html.parser.HTMLParser):
    """Elements, attributes and scripts of a page; every element is closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.attributes, self.scripts, self.policy, self.elements = [], [], [], "", set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attributes:
            self.policy = dict(attributes)["content"]
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


class HostilePage(unittest.TestCase):
    text = ""

    def setUp(self):
        self.page = Page(self.text)

    def test_the_text_is_markup_of_the_page_alone(self):
        self.assertEqual(self.page.open, [])
        self.assertEqual(self.page.elements & {"img", "iframe", "object", "embed", "link", "base", "form", "a"}, set())
        handlers = [attribute for attribute in self.page.attributes if attribute[1].startswith("on")]
        self.assertEqual(handlers, [])
        self.assertEqual([a for a in self.page.attributes if a[1] in OUTSIDE], [])

    def test_the_policy_lets_the_own_script_run_and_no_other(self):
        sections, own = self.page.scripts[:-1], self.page.scripts[-1]
        self.assertEqual(sections, ["document.title='owned'"], "the section of another audit brings the only other script")
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        self.assertEqual(self.page.policy, f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'")
        self.assertLess(self.text.index("Content-Security-Policy"), self.text.index("<title>"))

    def test_it_is_made_for_phones_and_paper(self):
        self.assertIn(("meta", "content", "width=device-width, initial-scale=1"), self.page.attributes)
        # Names of kernels in the last column are long: wrapped within a phone's width they would make rows of a dozen lines.
        for query in ("@media print", "@media (max-width: 40rem)", "prefers-color-scheme: dark",
                      "@media screen { .scroll td.name:last-child { min-width: 34rem; } }"):
            self.assertTrue(query in self.text, query)

    def test_hostile_text_is_shown_as_text(self):
        shown = re.sub(r"<[^>]*>", "", self.text)
        self.assertIn("&lt;script&gt;document.title=&#39;owned&#39;&lt;/script&gt;", shown)
        # What headers of .npy files hold stands in what their reader says.
        for sentence in ("unknown or repeated header key &#39;&lt;script&gt;document.title=1&lt;/script&gt;&#39;",
                         "dtype &#39;&lt;img src=x onerror=document.title=1&gt;&#39; is not exchanged"):
            self.assertIn("o.npy: " + sentence, shown)


class Browser(unittest.TestCase):
    text, program = "", ""

    def seen(self, text):
        """The elements of a page after its scripts have run."""
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            page.write_bytes(text.encode("utf-8", "surrogateescape"))
            command = [self.program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                       "--virtual-time-budget=3000", "--window-size=1200,900", "--dump-dom", page.as_uri()]
            return subprocess.run(command, capture_output=True, timeout=100, check=True).stdout.decode("utf-8", "replace")

    def wider_than(self, text, width, inner):
        """Names of the elements of a page, shown `width` pixels wide, that are wider than their place: the whole page, and with `inner`
        those that scroll on a screen. A frame has exactly the width that is asked for, which a window has not."""
        measure = """<script>onload = () => {
            const page = document.querySelector('iframe').contentDocument, wide = [];
            for (const element of [page.documentElement, ...page.querySelectorAll(%s)])
                if (element.scrollWidth > element.clientWidth + 1) wide.push(element.tagName + '.' + element.className);
            document.title = page.documentElement.clientWidth + ' wide: ' + wide.join(' ');
        }</script>""" % ("'.scroll, pre'" if inner else "'none'")
        frame = f'<iframe style="border: 0; width: {width}px; height: 800px" srcdoc="{html.escape(text)}"></iframe>'
        title = re.search(r"<title>(\d+) wide: (.*?)</title>", self.seen(f"<!doctype html><meta charset=utf-8><title></title>{measure}{frame}"), re.DOTALL)
        self.assertIsNotNone(title, "the page was not measured")
        self.assertLessEqual(int(title.group(1)), width)
        self.assertGreater(int(title.group(1)), width - 30, "the width of a scroll bar")
        return title.group(2).split()

    def on_paper(self):
        return self.text.replace("@media print", "@media all").replace("@media screen", "@media not all")

    def test_no_hostile_script_runs(self):
        seen = self.seen(self.text)
        title = re.search(r"<title>(.*?)</title>", seen, re.DOTALL).group(1)
        self.assertTrue(title.startswith("fmha verify:"), title)
        self.assertIn("All results", seen)

    def test_nothing_is_wider_than_a_phone(self):
        self.assertEqual(self.wider_than(self.text, PHONE, False), [])

    def test_nothing_is_cut_off_on_paper(self):
        self.assertEqual(self.wider_than(self.on_paper(), PAPER, True), [])

    def test_what_is_too_wide_is_noticed(self):
        wide = self.text.replace("<h1>", '<div style="width: 800px">wide</div><h1>', 1)
        self.assertEqual(self.wider_than(wide, PHONE, False), ["HTML."])
        cut = self.on_paper().replace("</style>", ".scroll { overflow: auto; } .scroll table { width: 900px; }</style>", 1)
        self.assertIn("DIV.scroll", self.wider_than(cut, PAPER, True))


def main():
    HostilePage.text = Browser.text = subprocess.run([sys.argv[1]], capture_output=True, check=True).stdout.decode("utf-8", "surrogateescape")
    parts = {"markup": HostilePage, "browser": Browser}
    wanted = sys.argv[2:] or list(parts)
    if "browser" in wanted:
        Browser.program = next((name for name in BROWSERS if shutil.which(name)), "")
        if not Browser.program:
            print("NOT RUN: no headless browser is installed; one of: " + ", ".join(BROWSERS))
            return 77
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(parts[name]) for name in wanted)
    return 0 if unittest.TextTestRunner().run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
