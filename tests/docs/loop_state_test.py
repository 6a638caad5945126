"""What loop_state.py must notice: a mean, a count and a goal that are other than the budgets have them, and no budgets at all."""

import io
import json
import pathlib
import tempfile
import unittest
from contextlib import redirect_stdout

import loop_state

KERNELS = {
    "fwd_gfx942_fp16_batch_h128x128_qr": {"busy": 760, "waiting": 745},
    "fwd_gfx942_bf16_group_h128x128_qr": {"busy": 900, "waiting": 600},
    "fwd_gfx942_fp16_batch_h64x64_qr": {"busy": 590, "waiting": 585},
    "fwd_splitkv_gfx942_fp8_batch_h64x64_qr": {"busy": 300, "waiting": 255},
}
PAGE = """| | gfx942 |
|---|---|
| forward, 16 bits | 0.64 (3) |
| split-KV, 8 bits | 0.26 (1) |

| gfx942 | 3 | 2 | 2 | 1 | 1 | 7.0 |

The 4 kernels of the [table](#state) have one.
"""
# Rows of families that the budgets above lack are empty.
EMPTY = "".join(f"| {title} | |\n" for title, *_ in loop_state.ROWS if title not in ("forward, 16 bits", "split-KV, 8 bits"))


class LoopState(unittest.TestCase):
    def said(self, page, kernels=KERNELS):
        """Exit code and output for a page and the budgets of gfx942."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs/amd_loops.md").write_text(page)
            (root / "kernels/generator/budgets").mkdir(parents=True)
            if kernels:
                (root / "kernels/generator/budgets/gfx942.json").write_text(json.dumps({"kernels": kernels}))
            out = io.StringIO()
            with redirect_stdout(out):
                code = loop_state.check(root)
            return code, out.getvalue()

    def test_the_right_page(self):
        self.assertEqual(self.said(PAGE + EMPTY), (0, ""))

    def test_other_numbers(self):
        for right, wrong in (("0.64 (3)", "0.65 (3)"), ("0.26 (1)", "0.25 (1)"), ("0.64 (3)", "0.64 (4)"), ("| 3 | 2 | 2 | 1 |", "| 3 | 2 | 1 | 1 |"),
                             ("| 3 | 2 | 2 | 1 |", "| 3 | 2 | 2 | 2 |"), ("The 4 kernels", "The 5 kernels"), ("| | gfx942 |", "| | gfx950 |")):
            with self.subTest(wrong=wrong):
                code, out = self.said((PAGE + EMPTY).replace(right, wrong))
                self.assertEqual(code, 1)
                self.assertEqual(out.count("\n"), 1, out)

    def test_no_budgets(self):
        self.assertEqual(self.said(PAGE + EMPTY, {})[0], 1)

    def test_an_unknown_kernel(self):
        with self.assertRaises(SystemExit):
            self.said(PAGE, {"other_gfx942_fp16_batch_h64x64": {"busy": 1, "waiting": 1}})


if __name__ == "__main__":
    unittest.main()
