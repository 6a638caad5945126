"""What upstream_options.py must notice: a document that is wrong in one way each, and one that is right."""

import unittest
from unittest import mock

import upstream_options

RIGHT = """
| option | also | on | what differs |
|---|---|---|---|
| `--arch` | `--target` | build, bench | |

| option | here | on |
|---|---|---|
| `--json` of a script | `--engine-json`, which is not `--json` | bench |

| option | instead |
|---|---|
| `--log` | `--journal` |

| option | writes |
|---|---|
| `--nonsense` | nothing |
"""
KNOWN = dict.fromkeys(upstream_options.COMMANDS, set()) | {"build": {"--arch", "--target"}, "bench": {"--arch", "--target", "--engine-json", "--json"}}


@mock.patch.object(upstream_options, "UPSTREAM", frozenset({"--arch", "--json", "--log"}))
class Documents(unittest.TestCase):
    def found(self, old="", new=""):
        self.assertIn(old, RIGHT)
        return list(upstream_options.mistakes(RIGHT.replace(old, new) if old else RIGHT, KNOWN))

    def test_what_is_right(self):
        self.assertEqual(self.found(), [])

    def test_each_mistake(self):
        for old, new, sentence in (("build, bench", "build, verify", "--arch: fmha verify has no --arch"), ("`--target`", "`--where`", "--arch: fmha build has no --where"),
                                   ("`--engine-json`", "`--tile-json`", "--json: fmha bench has no --tile-json"),
                                   ("| `--log` |", "| `--arch` |", "--arch is not here, the document says; fmha build has it"),
                                   ("| `--log` |", "| `--gpus` |", "--log is not in the document"),
                                   ("| bench |\n\n| option | instead", "| bend |\n\n| option | instead", "--json: the document names no option or no command")):
            with self.subTest(sentence):
                self.assertIn(sentence, self.found(old, new))


if __name__ == "__main__":
    unittest.main()
