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
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import torch_bench  # noqa: E402
import torch_prefill  # noqa: E402
import torch_sdpa  # noqa: E402
import torch_variants  # noqa: E402


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


def without_library():
    """torch_bench without libfmha.so."""
    return unittest.mock.patch.object(torch_bench, "fmha", types.SimpleNamespace(load=lambda _: None, Context=Context, Error=torch_bench.fmha.Error))


class Run(unittest.TestCase):
    def setUp(self):
        patch = without_library()
        patch.start()
        self.addCleanup(patch.stop)

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


class Tensor:
    """What a call needs of a torch tensor (batch, head, row, channel): its sizes, strides and address."""
    dtype, device = "torch.bfloat16", "cuda"

    def __init__(self, *shape, at=1):
        self.shape, self.at = shape, at

    def data_ptr(self):
        return self.at

    def stride(self, axis=None):
        strides = [1]
        for size in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * size)
        return strides if axis is None else strides[axis]

    def transpose(self, first, second):
        shape = list(self.shape)
        shape[first], shape[second] = shape[second], shape[first]
        return Tensor(*shape, at=self.at)

    def reshape(self, *shape):
        return Tensor(*shape, at=self.at)

    def contiguous(self):
        return self


class Library:
    """Notes the arguments of the last call."""
    lib = property(lambda self: self)

    def arguments(self, api):
        parts = {part: types.SimpleNamespace() for part in ("shape", "mask", "place", "lengths")}
        return types.SimpleNamespace(api=api, **parts)

    def tensor(self, *given):
        return given

    def fresh(self, _):
        return types.SimpleNamespace(kernel=b"the kernel")

    def run_on_device(self, args, stream, info=None):
        self.args = args
        return info


class Prefill(unittest.TestCase):
    """The comparison of prefill over pages: what its calls say, what must be how fast, and its lines."""
    torch = types.SimpleNamespace(cuda=types.SimpleNamespace(current_stream=lambda: types.SimpleNamespace(cuda_stream=0)), int32="int32",
                                  full_like=lambda tensor, _: Tensor(*tensor.shape, at=9), arange=lambda *_, **__: Tensor(3, at=8))
    pages = types.SimpleNamespace(k=Tensor(4, 2, 16, 64, at=5), v=Tensor(4, 2, 16, 64, at=6),
                                  place=lambda args: setattr(args.place, "page_size", 16))

    def call(self, api, pages=None):
        q, k, v = Tensor(2, 4, 32, 64, at=2), Tensor(2, 2, 32, 64, at=3), Tensor(2, 2, 32, 64, at=4)
        return torch_prefill.Call(self.torch, Library(), api, q, k, v, True, pages)

    def test_forward_and_paged_read_what_they_are_given(self):
        plain = self.call(torch_prefill.fmha.FWD)
        self.assertEqual((plain.args.q, plain.args.k, plain.kernel), ((2, 8192, 2048, 64, 1), (3, 4096, 2048, 64, 1), "the kernel"))
        paged = self.call(torch_prefill.fmha.FWD_PAGEDKV, self.pages)
        self.assertEqual((paged.args.k, paged.args.v, paged.args.place.page_size), ((5, 2048, 1024, 64, 1), (6, 2048, 1024, 64, 1), 16))
        self.assertFalse(hasattr(paged.args.shape, "mode"))

    def test_batch_prefill_reads_packed_rows(self):
        call = self.call(torch_prefill.fmha.BATCH_PREFILL, self.pages)
        args = call.args
        self.assertEqual((args.q, args.o), ((2, 0, 64, 256, 1), (9, 0, 64, 256, 1)))
        self.assertEqual((args.shape.mode, args.place.kv_layout, args.place.kv_lookup, args.lengths.seqstart_q), (torch_prefill.fmha.GROUP, 1, 0, 8))
        self.assertEqual(call.o.shape, (2, 4, 32, 64))

    def row(self, side, ratio, **more):
        row = {"work": "prefill", "batch": 8, "heads": 32, "kv_heads": 8, "length": 2048, "hdim": 64, "causal": False, "side": side, "kernel": "k",
               "wrong": "", "spread_percent": 0.1, "ratio": ratio, **more}
        return torch_prefill.ratios(row, side, {"forward": 100.0, side: 100.0 * ratio, "cudnn": 200.0, "flash": 50.0}, "tflops")

    def code(self, *rows):
        sys.modules["torch"] = stand_in()
        chosen = argparse.Namespace(library="lib", kernels="kernels", device=0, minimum=0.95, json=None)
        with without_library(), contextlib.redirect_stdout(io.StringIO()):
            return torch_bench.run(chosen, lambda *_: iter(rows), torch_prefill.line, "forward", ())

    def test_each_work_has_its_minimum(self):
        decoded = {"work": "decode", "batch": 8, "keys": 8192, "side": "batch prefill 16", "kernel": "k", "wrong": "", "spread_percent": 0.1, "minimum": 0.85}
        torch_prefill.ratios(decoded, "x", {"split-KV": 100.0, "x": 86.0, "cudnn": 100.0}, "gbytes")
        self.assertEqual(self.code(self.row("paged-KV 128", 0.96), self.row("batch prefill 1", 0.3, minimum=0.0), {**decoded, "ratio": 0.86}), 0)
        self.assertEqual(self.code(self.row("paged-KV 128", 0.94)), 1)
        self.assertEqual(self.code({**decoded, "ratio": 0.84}), 1)

    def test_lines(self):
        text = torch_prefill.line(self.row("paged-KV 128", 0.96))
        self.assertIn("0.960 of forward (100)   0.480 of cudnn (200)   1.920 of flash (50)\n    k", text)
        self.assertIn("WRONG: x", torch_prefill.line({**self.row("paged-KV 128", 0.96), "wrong": "x"}))

    def test_shapes_have_whole_pages(self):
        self.assertEqual([shape[-1] for shape in torch_prefill.SHAPES], [64, 128, 256])
        self.assertTrue(all(length % max(torch_prefill.PAGED, *torch_prefill.PREFILLED) == 0 for _, _, _, length, _ in torch_prefill.SHAPES))


class Variants(unittest.TestCase):
    def test_pairs_that_are_seen_are_those_of_a_mask(self):
        for length in (1, 7, 2048):
            for variant in (torch_variants.Variant("plain"), *torch_variants.variants(length), torch_variants.Variant("one side", left=3)):
                right = length if variant.right < 0 else variant.right
                left = length if variant.left < 0 else variant.left
                if length < 100:
                    pairs = sum(-left <= key - row <= right for row in range(length) for key in range(length))
                    self.assertEqual(variant.seen(length), pairs, variant.name)
        self.assertEqual(torch_variants.Variant("plain").seen(2048), 2048 * 2048)
        self.assertEqual(torch_variants.Variant("causal", right=0).seen(2048), 2048 * 2049 // 2)

    def test_variants_are_the_ones_that_are_promised(self):
        found = torch_variants.variants(8192)
        self.assertEqual(len({variant.name for variant in found}), len(found))
        self.assertTrue(any(variant.packed and variant.right < 0 for variant in found))
        self.assertTrue(any(variant.kv_group > 1 and variant.right < 0 for variant in found))
        self.assertTrue(any(variant.left >= 0 and variant.right > 0 for variant in found))

    def test_the_same_work_is_within_a_key_a_row_and_shares_nothing(self):
        for length in (2048, 8192):
            for variant in torch_variants.variants(length):
                same = variant.of_same_work(length)
                self.assertEqual((same.left, same.kv_group, same.packed), (-1, 1, False), variant.name)
                if variant.name != "causal":
                    self.assertLess(abs(same.seen(length) - variant.seen(length)), length, variant.name)
        self.assertEqual(torch_variants.Variant("causal", right=0).of_same_work(2048).seen(2048), 2048 * 2048)

    def test_work_is_what_is_seen(self):
        self.assertEqual(torch_variants.flops(2, 4, 64, 100), 4.0 * 2 * 4 * 64 * 100)

    def test_a_line_names_the_variant_and_what_is_wrong(self):
        row = {"batch": 1, "heads": 8, "length": 2048, "hdim": 128, "variant": "group mode", "kernel": "k", "wrong": "", "tflops": 1.0,
               "spread_percent": 0.1, "plain_tflops": 4.0, "same_tflops": 2.0, "same_spread_percent": 0.2, "plain_ratio": 0.25, "ratio": 0.5}
        self.assertIn("group mode", torch_variants.line(row))
        self.assertIn("ratio 0.250", torch_variants.line(row))
        self.assertIn("ratio 0.500", torch_variants.line(row))
        self.assertIn("WRONG: x", torch_variants.line({**row, "wrong": "x"}))
        self.assertNotIn("FlexAttention", torch_variants.line(row))
        beside = {**row, "flex_tflops": 0.8, "flex_spread_percent": 0.3, "same_flex_tflops": 1.0, "flex_ratio": 1.25, "flex_own_ratio": 0.8}
        self.assertIn("FlexAttention    0.8 ±0.3 %   ratio 1.250   its same work    1.0   its ratio 0.800", torch_variants.line(beside))

    def test_flex_attention_gets_the_mask_of_the_variant(self):
        asked = {}

        def block_mask(visible, batch, heads, rows, keys, device):
            asked["seen"] = sum(bool(visible(0, 0, row, key)) for row in range(rows) for key in range(keys))
            return "the mask"

        flex = types.SimpleNamespace(flex_attention=lambda *_, **given: given, create_block_mask=block_mask)
        torch = types.SimpleNamespace(compile=lambda function, dynamic: function,
                                      nn=types.SimpleNamespace(attention=types.SimpleNamespace(flex_attention=flex)))
        tensor = Tensor(1, 4, 40, 64)
        for variant in (torch_variants.Variant("causal", right=0), torch_variants.Variant("window", left=9, right=3)):
            self.assertEqual(torch_variants.flex_call(torch, tensor, tensor, tensor, variant)(), {"block_mask": "the mask", "enable_gqa": False})
            self.assertEqual(asked["seen"], variant.seen(40), variant.name)
        grouped = torch_variants.flex_call(torch, tensor, tensor, tensor, torch_variants.Variant("grouped", kv_group=4))
        self.assertEqual(grouped(), {"block_mask": None, "enable_gqa": True})


if __name__ == "__main__":
    unittest.main()
