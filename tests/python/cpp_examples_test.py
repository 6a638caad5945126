"""The dispatcher's C++ examples, a test each in our words: what they plan is planned and checked, what they run is run on the host and
judged. Programs in dispatcher/examples/cpp show the C++ side of 01, 12, 16, 17 and 23."""

import json
import subprocess
import unittest

import numpy as np

import fmha
from common import causal, random_arrays, softmax_attention, softmax_gradients
from fmha import families, find, reference


def command(*arguments, text=None):
    return subprocess.run([find.command(), *arguments], input=text, capture_output=True, text=True, check=False)


def plan(**problem):
    """The stages of a problem on gfx950, with the names of their kernels; empty without a complete plan."""
    signature = {"data_type": "bf16", "hdim_q": 128, "hdim_v": 128} | problem.pop("signature", {})
    full = {"batch": 2, "nhead_q": 8, "nhead_k": 2, "seqlen_q": 512, "seqlen_k": 512} | problem | {"signature": signature}
    said = command("plan", "--problem", "-", "--arch", "gfx950", "--format", "json", text=json.dumps(full))
    if said.returncode == 2:
        raise ValueError(said.stderr)
    told = json.loads(said.stdout)
    told = told[0] if isinstance(told, list) else told
    return {stage["family"]: stage["kernel"] for stage in told["stages"]} if told["valid"] else {}


def names(*arguments):
    """Kernels that the command lists for gfx950."""
    return command("enumerate", "--arch", "gfx950", "--names", *arguments).stdout.split()


class Case(unittest.TestCase):
    def forward(self, shape=((1, 4, 40, 64), (1, 2, 60, 64)), seen=None, bias=None, **options):
        q, k, v = random_arrays(1, shape[0], shape[1], shape[1])
        result = fmha.attention(q, k, v, lse=True, **options)
        o, lse, _ = softmax_attention(q, k, v, visible=seen, bias=bias, soft_cap=options.get("soft_cap", 0.0))
        np.testing.assert_allclose(result.o.astype(np.float64), o, atol=options.get("limit", 4e-3))
        np.testing.assert_allclose(result.lse, lse, atol=1e-3)
        return result

    def backward(self, shape=((1, 4, 40, 64), (1, 4, 60, 64)), data_type="fp16", seen=None, **options):
        q, k, v, d_o = random_arrays(2, shape[0], shape[1], shape[1], shape[0])
        mask = {"mask": options["mask"]} if "mask" in options else {}
        forward = fmha.attention(q, k, v, data_type=data_type, lse=True, **mask)
        got = fmha.attention_backward(q, k, v, forward.o, forward.lse, d_o, data_type=data_type, **options)
        for gradient, expected in zip((got.dq, got.dk, got.dv), softmax_gradients(q, k, v, d_o, visible=seen)):
            np.testing.assert_allclose(gradient.astype(np.float64), expected, atol=3e-2 if data_type == "fp16" else 0.2)
        return got


class Plans(Case):
    def test_01_basic(self):
        self.forward()

    def test_02_split_kv(self):
        self.assertEqual(list(plan(api_family="fwd_splitkv", num_splits=4)), ["fwd_splitkv", "fwd_splitkv_combine"])

    def test_03_caches(self):
        paged = {"use_paged_kv": True, "page_size": 128}
        self.assertEqual(list(plan(api_family="fwd_pagedkv", signature=paged, presence={"seqlen_k": True, "block_table": True})), ["fwd_pagedkv"])
        self.assertEqual(list(plan(api_family="fwd_appendkv", presence={"seqlen_k": True})), ["fwd_appendkv"])
        self.assertEqual(list(self.prefill("sglang_1d", "linear", 16)), ["batch_prefill"])

    def prefill(self, lookup, layout, page):
        return plan(api_family="batch_prefill", max_seqlen_q=512, max_seqlen_k=512, presence={"seqstart_q": True, "block_table": True},
                    signature={"mode": "group", "use_paged_kv": True, "page_size": page, "kv_layout": layout, "kv_lookup": lookup})

    def test_04_backward(self):
        self.assertEqual(list(plan(api_family="bwd")), ["bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq"])

    def test_05_append_with_rope(self):
        for rope in ("interleaved", "half_rotated"):
            kernel = plan(api_family="fwd_appendkv", rotary_dim=64, signature={"rope": rope}, presence={"seqlen_k": True, "rotary": True})
            self.assertIn(rope, kernel["fwd_appendkv"])
        with self.assertRaisesRegex(ValueError, "V-4"):
            plan(api_family="fwd_appendkv", rotary_dim=60, signature={"rope": "interleaved"}, presence={"seqlen_k": True, "rotary": True})

    def test_06_batch_prefill(self):
        for lookup in ("sglang_1d", "vllm_2d"):
            for layout in ("linear", "vectorized"):
                self.assertIn(f"{layout}_{lookup}_page16", self.prefill(lookup, layout, 16)["batch_prefill"])
        with self.assertRaisesRegex(ValueError, "B-1"):
            self.prefill("sglang_1d", "vectorized", 1)

    def test_07_to_10_profiles(self):
        for profile, family, has, has_not in (("pytorch", "fwd", "_fp16_", "_alibi_"), ("flash_fwd", "fwd", "_bf16_", "_vc"),
                                              ("flash_bwd", "bwd", "_fp16_", "_fp32_"), ("aiter_batch", "fwd", "_batch_", "_group_"),
                                              ("aiter_group", "fwd", "_group_", "_batch_"), ("fp32_all", "fwd", "_fp32_", "_fp16_"),
                                              ("fp8_test", "fwd", "_fp8bf16_", "_fp16_")):
            listed = names("--rules", "ck", "--profile", profile, "--family", family)
            self.assertGreater(len(listed), 3, profile)
            self.assertTrue(any(has in name for name in listed), profile)
            self.assertEqual([name for name in listed if has_not in name][:3], [], profile)

    def test_11_receipt_numbers(self):
        for number, profile in ((4, "pytorch"), (200, "aiter_group"), (800, "fp32_all")):
            self.assertEqual(names("--rules", "ck", "--profile", str(number)), names("--rules", "ck", "--profile", profile))

    def test_12_registry_as_json(self):
        with fmha.Context(fmha.load(), "gfx950") as context:
            context.keep("c.family == 'fwd' and c.hdim_q == 64 and c.data_type == 'bf16' and c.mode == 'batch' and c.mask == 'no'")
            told = json.loads(context.export())
        self.assertEqual(told["metadata"]["total_kernels"], len(told["kernels"]))
        self.assertEqual({kernel["signature"]["hdim_q"] for kernel in told["kernels"]}, {64})

    def test_13_features(self):
        for signature in ({"has_lse": True}, {"bias": "alibi"}, {"bias": "elementwise"}, {"has_dropout": True}, {"has_logits_soft_cap": True},
                          {"mode": "batch", "hdim_q": 256, "hdim_v": 256}, {"v_layout": "column"}, {"data_type": "fp8bf16"}):
            self.assertTrue(plan(signature=signature), signature)
        for mask in ("top_left", "bottom_right"):
            self.assertIn("_causal", plan(mask_type=mask, window_right=0)["fwd"])

    def test_16_heuristic_by_length(self):
        short, long = plan(seqlen_q=16)["fwd"], plan(seqlen_q=8192, seqlen_k=8192)["fwd"]
        self.assertNotEqual(short, long)

    def test_17_autocorrection(self):
        from fmha_utils import FmhaKernelConfig, setup_fmha_dispatcher
        setup = setup_fmha_dispatcher(FmhaKernelConfig(gfx_arch="gfx950", tile_m0=100, tile_k0=48, pipeline="qr_async_trload_v3"))
        self.assertTrue(setup.success and setup.notes)
        exact = setup_fmha_dispatcher(FmhaKernelConfig(gfx_arch="gfx950"))
        self.assertTrue(exact.success and not exact.notes)

    def test_23_and_24_registries_of_consumers(self):
        kept = {}
        for consumer, where in (("vision", "c.mask == 'no'"), ("language", "c.mask == 'top_left'")):
            context = fmha.Context(fmha.load(), "gfx950")
            context.keep(f"c.family == 'fwd' and c.data_type == 'fp16' and {where}")
            kept[consumer] = context
        q, k, v = random_arrays(3, *[(1, 2, 33, 64)] * 3)
        self.assertTrue(fmha.attention(q, k, v, context=kept["vision"]).kernel)
        with self.assertRaisesRegex(fmha.Error, "no complete plan"):
            fmha.attention(q, k, v, mask="causal", context=kept["vision"])
        self.assertIn("causal", fmha.attention(q, k, v, mask="causal", context=kept["language"]).kernel)


class Runs(Case):
    def test_14_benchmark_with_validation(self):
        said = command("bench", "--shape", "dtype=fp16,batch=1,heads=2,seqlen=64,hdim=64", "--seconds", "0.05", "--format", "json")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("fwd_gfx950_fp16", said.stdout)

    def test_15_shapes(self):
        for batch, length in ((1, 1), (2, 64), (3, 129)):
            self.forward(((batch, 4, length, 64), (batch, 2, length, 64)))

    def test_18_split_kv(self):
        q, k, v = random_arrays(5, (2, 4, 1, 128), (2, 2, 300, 128), (2, 2, 300, 128))
        with fmha.Context(fmha.load(), "gfx950") as context:
            call = families.splitkv(context, "gfx950", q, k, v, data_type="fp16", num_splits=5).run()
        np.testing.assert_allclose(call.output("o"), softmax_attention(q, k, v)[0], atol=3e-3)

    def test_19_masks(self):
        apart = np.arange(60)[None] - np.arange(40)[:, None]
        self.forward(mask="no")
        self.forward(mask="top_left", seen=causal(40, 60))
        self.forward(mask="bottom_right", seen=causal(40, 60, True))
        self.forward(mask="top_left", window=(6, 2), seen=(apart >= -6) & (apart <= 2))

    def test_20_bias(self):
        (bias,) = random_arrays(6, (1, 4, 40, 60))
        q, k, v = random_arrays(1, (1, 4, 40, 64), (1, 2, 60, 64), (1, 2, 60, 64))
        np.testing.assert_allclose(fmha.attention(q, k, v, bias=bias).o, softmax_attention(q, k, v, bias=bias.astype(np.float64))[0], atol=4e-3)
        slopes = np.float32([0.5, 0.25, 0.125, 0.0625])
        distance = -slopes[None, :, None, None] * np.abs(np.arange(60)[None] - np.arange(40)[:, None] - 20)
        np.testing.assert_allclose(fmha.attention(q, k, v, alibi_slopes=slopes).o, softmax_attention(q, k, v, bias=distance)[0], atol=4e-3)

    def test_21_dropout_and_grouped_heads(self):
        q, k, v = random_arrays(7, (1, 16, 40, 64), (1, 4, 60, 64), (1, 4, 60, 64))
        result = fmha.attention(q, k, v, dropout=(0.2, 5, 0), lse=True)
        np.testing.assert_allclose(result.o, reference.attention(q, k, v, data_type="fp16", dropout=(0.2, 5, 0))[0], atol=4e-3)
        self.forward(((1, 16, 40, 64), (1, 4, 60, 64)))

    def test_22_backward(self):
        self.backward()

    def test_25_append_and_prefill(self):
        cache = [np.zeros((1, 2, 8, 128), np.float16) for _ in range(2)]
        k, v = random_arrays(8, (1, 2, 3, 128), (1, 2, 3, 128))
        with fmha.Context(fmha.load(), "gfx950") as context:
            families.append(context, "gfx950", *cache, k, v, data_type="fp16", seqlens_k=[2]).run()
        np.testing.assert_array_equal(cache[0][:, :, 2:5], k)
        Plans().test_06_batch_prefill()

    def test_26_types_and_head_sizes(self):
        for hdim in (32, 64, 128, 256):
            self.forward(((1, 2, 20, hdim), (1, 2, 30, hdim)))
        for data_type in ("bf16", "fp8bf16", "fp8fp32"):
            q, k, v = random_arrays(9, *[(1, 2, 20, 128)] * 3)
            exact = reference.attention(q, k, v, data_type=data_type)[0]
            np.testing.assert_allclose(fmha.attention(q, k, v, data_type=data_type).o, exact, atol=6e-2)

    def test_27_padding_and_permutation(self):
        q, k, v = random_arrays(10, (2, 4, 40, 64), (2, 2, 60, 64), (2, 2, 60, 64))
        lengths = {"seqlen_q": [40, 11], "seqlen_k": [60, 33]}
        o = fmha.attention(q, k, v, **lengths).o
        for b in range(2):
            rows, keys = lengths["seqlen_q"][b], lengths["seqlen_k"][b]
            part = [array[b : b + 1, :, :length] for array, length in ((q, rows), (k, keys), (v, keys))]
            np.testing.assert_allclose(o[b : b + 1, :, :rows], softmax_attention(*part)[0], atol=4e-3)
        column = np.ascontiguousarray(v.swapaxes(2, 3))
        np.testing.assert_allclose(fmha.attention(q, k, column, v_column=True).o, softmax_attention(q, k, v)[0], atol=4e-3)
        turned = [array.transpose(0, 2, 1, 3) for array in (q, k, v)]
        np.testing.assert_allclose(fmha.attention(*turned, layout="bshd").o.transpose(0, 2, 1, 3), softmax_attention(q, k, v)[0], atol=4e-3)


class Later(Case):
    def test_28_backward_masks(self):
        self.backward(mask="top_left", seen=causal(40, 60))
        self.backward(mask="bottom_right", seen=causal(40, 60, True))

    def test_29_backward_bias_and_dropout(self):
        q, k, v, d_o = random_arrays(11, *[(1, 2, 24, 64)] * 4, dtype=np.float32)
        (bias,) = random_arrays(12, (1, 2, 24, 24), dtype=np.float32)
        options = {"bias": bias, "dropout": (0.25, 3, 0)}
        forward = fmha.attention(q, k, v, lse=True, **options)
        got = fmha.attention_backward(q, k, v, forward.o, forward.lse, d_o, dbias=True, **options)
        exact = reference.gradients(q, k, v, forward.o, forward.lse, d_o, data_type="fp32", dbias=True, **options)
        for name in ("dq", "dk", "dv", "dbias"):
            np.testing.assert_allclose(getattr(got, name), exact[name], atol=1e-4, err_msg=name)

    def test_30_backward_benchmark(self):
        self.assertGreater(self.backward().milliseconds, 0)

    def test_31_soft_cap(self):
        self.forward(soft_cap=0.5)

    def test_32_sink_tokens(self):
        apart = np.arange(60)[None] - np.arange(40)[:, None]
        seen = (apart <= 0) & ((apart >= -5) | (np.arange(60)[None] < 3))
        self.forward(mask="top_left", window=(5, 0), sink=3, seen=seen)

    def test_33_deterministic_backward(self):
        one, two = (self.backward(deterministic=True) for _ in range(2))
        self.assertEqual(one.dq.tobytes(), two.dq.tobytes())

    def test_34_backward_of_grouped_heads(self):
        self.backward(((1, 8, 40, 64), (1, 2, 60, 64)))

    def test_35_generic_window(self):
        apart = np.arange(60)[None] - np.arange(40)[:, None]
        self.forward(mask="generic", window=(4, 7), seen=(apart >= -4) & (apart <= 7))


class Complete(unittest.TestCase):
    def test_every_example_has_its_test(self):
        numbers = set()
        for kind in (Plans, Runs, Later):
            for name in (name for name in dir(kind) if name.startswith("test_")):
                words = name.split("_")[1:]
                last = words[2] if words[1] in ("to", "and") and words[2].isdigit() else words[0]
                numbers |= set(range(int(words[0]), int(last) + 1))
        self.assertEqual(numbers, set(range(1, 36)))


if __name__ == "__main__":
    unittest.main()
