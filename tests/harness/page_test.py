"""page_test.py HOSTILE_PAGE: the page of a run whose every text is hostile runs no script but its own, and refers to nothing outside.

The markup is read here, and a headless browser opens the page where one is installed.
"""

import base64
import hashlib
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "firefox-esr")
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

    def test_a_browser_runs_no_hostile_script(self):
        browser = next((name for name in BROWSERS if shutil.which(name)), None)
        if browser is None:
            self.skipTest("no headless browser is installed; one of: " + ", ".join(BROWSERS))
        if browser.startswith("firefox"):
            self.skipTest("firefox cannot print the page's elements from its command line")
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            page.write_bytes(self.text.encode("utf-8", "surrogateescape"))
            command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                       "--virtual-time-budget=3000", "--window-size=390,844", "--dump-dom", page.as_uri()]
            seen = subprocess.run(command, capture_output=True, timeout=100, check=True).stdout.decode("utf-8", "replace")
        title = re.search(r"<title>(.*?)</title>", seen, re.DOTALL).group(1)
        self.assertTrue(title.startswith("fmha verify:"), title)
        self.assertIn("All results", seen)


if __name__ == "__main__":
    HostilePage.text = subprocess.run([sys.argv.pop(1)], capture_output=True, check=True).stdout.decode("utf-8", "surrogateescape")
    unittest.main()
