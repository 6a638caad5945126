"""The order that the loop model gives kernels, against speeds that were measured once, and loop_rank.py on what it must refuse.

measured/h200_loops.json has the loops as `fmha build --audit` modelled them, h200_speeds.csv the TFLOP/s of the same code objects
on an H200, of processes in which nothing else ran on the GPU. The numbers are facts of that day (27 November 2026); a kernel that
changes does not change them.
"""

import contextlib
import io
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import loop_rank  # noqa: E402

LOOPS = HERE / "measured" / "h200_loops.json"
SPEEDS = HERE / "measured" / "h200_speeds.csv"
PEAK = "633.9"  # mma.sync on registers, the most of the same run


class Rank(unittest.TestCase):
    def rank(self, change=lambda rows: rows, peak=PEAK):
        rows = [line.rsplit(",", 1) for line in SPEEDS.read_text(encoding="utf-8").splitlines()]
        with tempfile.TemporaryDirectory() as folder:
            speeds = pathlib.Path(folder) / "speeds.csv"
            speeds.write_text("".join(f"{name},{speed}\n" for name, speed in change(rows)), encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                code = loop_rank.main(LOOPS, speeds, peak)
        return code, out.getvalue()

    def first(self):
        return SPEEDS.read_text(encoding="utf-8").split(",", 1)[0]

    def test_measured_speeds_have_the_order_of_the_model_and_stay_below_its_bounds(self):
        code, out = self.rank()
        self.assertEqual(code, 0, out)
        said = re.search(r"^56 kernels, rank correlation ([0-9.]+), 0 above their bound$", out, re.MULTILINE)
        self.assertTrue(said, out)
        self.assertGreaterEqual(float(said[1]), 0.9)

    def test_another_order_is_red(self):
        def swapped(rows):
            speeds = sorted((speed for _, speed in rows), key=float)
            middle = len(speeds) // 2
            return [(name, speeds[(speeds.index(speed) + middle) % len(speeds)]) for name, speed in rows]

        _, out = self.rank(swapped)
        self.assertLess(float(re.search(r"rank correlation ([0-9.-]+)", out)[1]), 0.9)

    def test_a_kernel_above_its_bound_is_red(self):
        code, out = self.rank(lambda rows: [(rows[0][0], "640")] + rows[1:])
        self.assertEqual(code, 1)
        self.assertIn(", 1 above their bound", out)
        self.assertIn(f"ABOVE ITS BOUND  {self.first()}", out)

    def test_few_kernels_are_red(self):
        code, out = self.rank(lambda rows: rows[:23])
        self.assertEqual(code, 1)
        self.assertIn("fewer than 24 kernels", out)

    def test_a_kernel_without_a_loop_is_named(self):
        with self.assertRaisesRegex(SystemExit, "nothing has no loop"):
            self.rank(lambda rows: rows + [("nothing", "1")])


if __name__ == "__main__":
    unittest.main()
