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

    def run_with(self, rows, torch=stand_in(), **more):
        sys.modules["torch"] = torch
        chosen = argparse.Namespace(library="lib", kernels="kernels", device=0, minimum=0.8, json=None, **more)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = torch_bench.run(chosen, lambda *_: iter(rows), lambda row: str(row["ratio"]), "theirs",
                                   ((lambda row: row.get("spills"), "spill"),), lambda _: ({"copy": 1.0}, ", a copy"))
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


if __name__ == "__main__":
    unittest.main()
