"""The run that the comparisons with PyTorch share, with stand-ins for PyTorch and for the library: what is slow or wrong, or not there."""

import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import torch_bench  # noqa: E402
import torch_sdpa  # noqa: E402


class Context:
    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def kernel_count(self):
        return 3


def stand_in(devices=1):
    cuda = types.SimpleNamespace(is_available=lambda: devices > 0, device_count=lambda: devices, set_device=lambda _: None, get_device_name=lambda: "GPU")
    return types.SimpleNamespace(cuda=cuda, zeros=lambda *_, **__: None, __version__="2")


class Run(unittest.TestCase):
    def setUp(self):
        torch_bench.fmha = types.SimpleNamespace(load=lambda _: None, Context=Context, Error=torch_bench.fmha.Error)

    def run_with(self, rows, torch=stand_in(), whole=None, **more):
        sys.modules["torch"] = torch
        chosen = argparse.Namespace(library="lib", kernels="kernels", device=0, minimum=0.8, json=None, **more)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = torch_bench.run(chosen, lambda *_: iter(rows), lambda row: str(row["ratio"]), "theirs",
                                   ((lambda row: row.get("spills"), "spill"),), lambda _: ({"copy": 1.0}, ", a copy"), whole)
        return code, out.getvalue(), err.getvalue()

    def test_well(self):
        code, out, _ = self.run_with([{"ratio": 0.9, "wrong": ""}])
        self.assertEqual(code, 0)
        self.assertEqual(out, "GPU, PyTorch 2, 3 kernels of ours, a copy\n0.9\n1 measured, 0 wrong, 0 below 0.8 of theirs, 0 spill\n")

    def test_slow_wrong_spilling_or_nothing(self):
        for rows, text in (([{"ratio": 0.7, "wrong": ""}], "1 below 0.8 of theirs"), ([{"ratio": 0.7, "wrong": "x"}], "1 wrong, 0 below"),
                           ([{"ratio": 0.9, "wrong": "", "spills": True}], "1 spill"), ([], "0 measured")):
            code, out, _ = self.run_with(rows)
            self.assertEqual(code, 1, text)
            self.assertIn(text, out)

    def test_what_all_rows_reach_together(self):
        rows = [{"ratio": ratio, "wrong": wrong} for ratio, wrong in ((0.9, ""), (1.1, ""), (9.0, "x"))]
        code, out, _ = self.run_with(rows[:2], whole=lambda right: ({}, [f"of {len(right)}"], ""))
        self.assertEqual((code, out.splitlines()[-2:]), (0, ["of 2", "2 measured, 0 wrong, 0 below 0.8 of theirs, 0 spill"]))
        code, out, _ = self.run_with(rows[:2], whole=lambda right: ({}, [], "too slow together"))
        self.assertEqual((code, out.splitlines()[-1]), (1, "2 measured, 0 wrong, 0 below 0.8 of theirs, 0 spill, too slow together"))
        self.assertIn("of 2\n", self.run_with(rows, whole=lambda right: ({}, [f"of {len(right)}"], ""))[1])

    def test_no_device(self):
        code, _, err = self.run_with([], stand_in(0))
        self.assertEqual((code, err), (2, "PyTorch sees no device 0\n"))

    def test_the_record_has_facts_and_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "numbers.json"
            sys.modules["torch"] = stand_in()
            chosen = argparse.Namespace(library="lib", kernels="kernels", device=0, minimum=0.8, json=str(file))
            with contextlib.redirect_stdout(io.StringIO()):
                torch_bench.run(chosen, lambda *_: iter([{"ratio": 1.0, "wrong": ""}]), str, "theirs", (), lambda _: ({"copy": 1.0}, ""))
            self.assertEqual(json.loads(file.read_text()), {"device": "GPU", "torch": "2", "copy": 1.0, "rows": [{"ratio": 1.0, "wrong": ""}]})


class Lines(unittest.TestCase):
    def test_every_shape_with_every_mask(self):
        for mask, causal in (("both", [False, True]), ("none", [False]), ("causal", [True])):
            chosen = argparse.Namespace(shapes=[1, 2], mask=mask, rounds=7)
            calls = list(torch_bench.over_shapes(chosen, lambda *given: given)("torch", "context", {}))
            self.assertEqual(calls, [("torch", "context", shape, one, 7) for shape in (1, 2) for one in causal])

    def test_a_wrong_row_has_no_speed(self):
        row = {"batch": 8, "heads": 16, "length": 2048, "hdim": 128, "causal": True, "wrong": "dq differs", "kernel": "k"}
        self.assertEqual(torch_bench.wrong_line(torch_bench.head(row), row), "b8  h16  s2048   d128 causal  WRONG: dq differs\n    k")


class Forward(unittest.TestCase):
    """The shapes and means of the comparison of forward."""

    def row(self, ratio, **more):
        return {"heads": 8, "kv_heads": 8, "hdim": 64, "length": 512, "causal": False, "cudnn_ratio": ratio, "flash_ratio": 2.0, "wrong": "", **more}

    def test_shapes(self):
        plain = [shape for shape in torch_sdpa.SHAPES if shape[1] == shape[2]]
        self.assertEqual(len(plain), 12)
        for batch, heads, _, length, hdim in plain:
            self.assertEqual((batch * length, heads * hdim), (16384, 2048))
        self.assertEqual([shape for shape in torch_sdpa.SHAPES if shape not in plain], [(4, 32, 8, 4096, 128)])

    def test_means_are_geometric_and_leave_grouped_heads_out(self):
        rows = [self.row(0.5), self.row(2.0, hdim=128, causal=True), self.row(9.0, kv_heads=2)]
        facts, lines, missed = torch_sdpa.means(rows, 1.0)
        self.assertAlmostEqual(facts["means"]["all"]["cudnn"], 1.0)
        self.assertEqual([facts["means"][name]["shapes"] for name in ("all", "d64", "d128", "s512", "plain", "causal")], [2, 1, 1, 2, 1, 1])
        self.assertAlmostEqual(facts["means"]["causal"]["cudnn"], 2.0)
        self.assertIn("geometric mean of  2 (all): 1.000 to cuDNN, 2.000 to flash", lines)
        self.assertEqual(missed, "")

    def test_a_mean_that_is_too_small(self):
        self.assertEqual(torch_sdpa.means([self.row(0.9)], 1.0)[2], "their mean 0.900 is below 1.0")
        self.assertEqual(torch_sdpa.means([], 1.0)[2], "no shape without grouped heads")

    def test_a_line_names_grouped_heads(self):
        row = self.row(1.0, batch=4, kernel="k", tflops=1.0, spread_percent=0.1)
        for name in torch_sdpa.BACK_ENDS:
            row |= {name + "_tflops": 1.0, name + "_spread_percent": 0.2}
        self.assertNotIn("KV heads", torch_sdpa.line(row))
        self.assertIn("over 2 KV heads", torch_sdpa.line({**row, "kv_heads": 2}))
        self.assertIn("WRONG: x", torch_sdpa.line({**row, "wrong": "x"}))


if __name__ == "__main__":
    unittest.main()
