"""The dispatcher's Python examples on forward, a client each in our words: the same names in the same forms, and beyond them the
feature that the example is about, on our kernels and judged. Sizes are smaller. clients_backward_test.py has those on backward."""

import argparse
import json
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from client import ARCH, Client, data_of, problem_of, single
from common import causal, softmax_attention
from fmha_utils import (FmhaKernelConfig, FmhaKernelSpec, FmhaProblem, FmhaRegistry, FmhaValidator, cpu_attention_fwd,
                        detect_gpu_arch, num_splits_heuristic_ck, setup_fmha_dispatcher, spec_to_config)


class Basics(Client):
    def test_01_basic(self):
        specs = [FmhaKernelSpec(name=f"{pipeline} {m0}x{n0}x{k0}", hdim=128, pipeline=pipeline, tile_m0=m0, tile_n0=n0, tile_k0=k0)
                 for pipeline, m0, n0, k0 in (("qr_async", 128, 128, 32), ("qr_async", 128, 64, 32), ("qr_async", 64, 128, 32),
                                              ("qr_async", 64, 64, 32), ("qr", 128, 128, 32), ("qr", 64, 128, 32), ("qr", 128, 64, 32),
                                              ("qr_async", 128, 128, 64), ("qr_async", 64, 128, 64))]
        prob = problem_of()
        for dtype, limit in (("fp16", 1e-3), ("bf16", 5e-3)):
            registry = FmhaRegistry(name="basic")
            for spec in specs:
                registry.register_kernel(spec_to_config(spec, dtype, ARCH))
            for setup in self.built(registry, verbose=False, max_workers=None):
                self.forward(setup.runner, prob, limit=limit)
                setup.runner.cleanup()

    def test_02_multi_shape(self):
        setup = setup_fmha_dispatcher(spec_to_config(FmhaKernelSpec(name="one", hdim=128, pipeline="qr_async"), dtype="fp16", arch=ARCH),
                                      verbose=True)
        self.assertTrue(Path(setup.library_path).is_file())
        for batch, heads, length in ((1, 4, 32), (2, 4, 64), (1, 2, 130), (4, 1, 17)):
            prob = problem_of(batch, heads, length)
            self.assertIn(",", f"{prob.num_ops:,}")
            self.forward(setup.runner, prob)
        setup.runner.cleanup()

    def test_03_benchmark(self):
        runner = self.jit()
        prob = problem_of()
        times = [self.forward(runner, prob).time_ms for _ in range(3)]
        self.assertGreater(min(times), 0)

    def test_04_validation(self):
        setup = setup_fmha_dispatcher(spec_to_config(FmhaKernelSpec(name="v", hdim=128), dtype="bf16", arch=ARCH), verbose=True)
        validator = FmhaValidator(rtol=1e-2, atol=1e-2)
        for batch, heads, shared, rows, keys in ((1, 4, 4, 64, 64), (1, 8, 2, 64, 64), (1, 2, 2, 64, 256), (1, 2, 2, 1, 128), (2, 4, 1, 65, 127)):
            prob = FmhaProblem(batch=batch, nhead_q=heads, nhead_k=shared, seqlen_q=rows, seqlen_k=keys, hdim_q=128, hdim_v=128)
            arrays = data_of(prob, 0.1)
            result = setup.runner.run(*arrays, prob)
            close, absolute, relative = validator.check(result.output, cpu_attention_fwd(*single(arrays), prob.scale))
            self.assertTrue(close, (absolute, relative))

    def test_05_numpy_integration(self):
        runner = self.jit()

        def attend(q, k, v, scale=None):
            prob = FmhaProblem(batch=q.shape[0], nhead_q=q.shape[1], nhead_k=k.shape[1], seqlen_q=q.shape[2], seqlen_k=k.shape[2],
                               hdim_q=q.shape[3], hdim_v=v.shape[3])
            result = runner.run(q, k, v, prob, scale=scale)
            if not result.success:
                raise RuntimeError(result.error)
            return result.output

        for heads in (4, 1):
            q, k, v = data_of(problem_of(nhead_k=heads))
            np.testing.assert_allclose(attend(q, k, v), softmax_attention(q, k, v)[0], atol=2e-3)
            np.testing.assert_allclose(attend(q, k, v, scale=0.5), softmax_attention(q, k, v, scale=0.5)[0], atol=2e-3)
        with self.assertRaisesRegex(RuntimeError, "shape"):
            attend(q, k[:, :, :, :64], v)

    def test_06_json_export(self):
        configs = [FmhaKernelConfig(family="fwd", data_type=dtype, hdim_q=hdim, hdim_v=hdim, pipeline="qr_async", pad_s=True, pad_sk=True,
                                    pad_d=True, pad_dv=True, gfx_arch=ARCH) for dtype, hdim in (("fp16", 128), ("bf16", 64))]
        told = {"registry": "export", "arch": ARCH, "kernel_count": len(configs), "kernels": []}
        for config in configs:
            entry = {name: getattr(config, name) for name in ("name", "family", "data_type", "hdim_q", "hdim_v", "pipeline", "mode")}
            entry |= {name: list(getattr(config, name)) for name in ("tile", "wave", "warp", "padding")}
            told["kernels"].append(entry | {"target": config.gfx_arch, "codegen_json": json.loads(config.to_codegen_json())})
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "kernels.json")
            file.write_text(json.dumps(told, indent=2))
            again = json.loads(file.read_text())
        self.assertEqual(again["kernels"][1]["codegen_json"]["signature"]["hdim_q"], 64)
        self.assertEqual(again["kernels"][0]["padding"], [True] * 4)
        self.assertTrue(setup_fmha_dispatcher(configs[1], verbose=True).success)

    def test_07_stress(self):
        registry = FmhaRegistry("stress")
        for hdim, keys in ((128, 128), (64, 64)):
            for pipeline in ("qr_async", "qr"):
                for rows in (128, 64):
                    registry.register_kernel(spec_to_config(FmhaKernelSpec(name="s", hdim=hdim, pipeline=pipeline, tile_m0=rows, tile_n0=keys,
                                                                           tile_k0=32), dtype="fp16", arch=ARCH))
        self.assertEqual(len(registry), 8)
        ran = 0
        for setup in self.built(registry, verbose=False, max_workers=2):
            self.forward(setup.runner, problem_of(hdim=setup.config.hdim_q))
            self.assertIn(f"h{setup.config.hdim_q}", setup.config.name)
            ran += 1
        self.assertEqual(ran, 8)

    def test_08_heuristics(self):
        @dataclass
        class Profile:
            label: str
            config: FmhaKernelConfig
            longest: int

        def config(rows, keys, **more):
            warp = 16 if rows == 64 else 32
            return FmhaKernelConfig(**dict(family="fwd", data_type="fp16", hdim_q=128, hdim_v=128, pipeline="qr_async", tile_m0=rows,
                                           tile_n0=keys, tile_k0=32, tile_n1=128, tile_k1=32, tile_k0max=128, wave_m0=4, wave_n0=1, wave_k0=1,
                                           wave_m1=4, wave_n1=1, wave_k1=1, warp_m0=warp, warp_n0=warp, warp_k0=16, warp_m1=warp,
                                           warp_n1=warp, warp_k1=16, gfx_arch=ARCH) | more)

        profiles = [Profile("small", config(64, 64), 64), Profile("medium", config(128, 128), 256), Profile("large", config(128, 256), 1 << 30),
                    Profile("unpadded", config(128, 128, pipeline="qr", pad_s=False, pad_sk=False, pad_d=True, pad_dv=True), 0)]
        registry = FmhaRegistry("pool")
        for profile in profiles:
            registry.register_kernel(profile.config)
        results = self.built(registry, verbose=False)
        for length in (32, 200, 300):
            chosen = next(profile for profile in profiles if length <= profile.longest)
            self.assertIs(profiles[profiles.index(chosen)], chosen)
            self.forward(results[profiles.index(chosen)].runner, problem_of(1, 2, length))
        self.forward(results[3].runner, problem_of(1, 2, 128))

    def test_09_multi_registry(self):
        validator = FmhaValidator(rtol=1e-2, atol=1e-2)
        for name, rows in (("latency", 64), ("throughput", 128)):
            registry = FmhaRegistry(name)
            config = FmhaKernelConfig(family="fwd", data_type="fp16", hdim_q=128, hdim_v=128, pipeline="qr_async", tile_m0=rows, gfx_arch=ARCH,
                                      pad_s=True)
            self.assertEqual(len(config.tile[:2]), 2)
            registry.register_kernel(config)
            (setup,) = self.built(registry, verbose=False)
            for length in (16, 200):
                prob = problem_of(1, 4, length)
                arrays = data_of(prob, 0.5)
                result = setup.runner.run(*arrays, prob)
                self.assertTrue(validator.check(result.output, cpu_attention_fwd(*single(arrays), prob.scale))[0])
            setup.runner.cleanup()

    def test_10_advanced_benchmark(self):
        runner = self.jit(family="fwd", pipeline="qr_async", tile_m0=128, tile_n0=128)
        self.assertGreaterEqual(runner.kernel_count, 1)
        results = [self.forward(runner, problem_of(batch, 2, length)) for batch, length in ((1, 32), (2, 64), (1, 256))]
        self.assertTrue(all(result.tflops > 0 for result in results))
        runner.cleanup()


class Features(Client):
    def test_11_bf16(self):
        self.forward(self.jit(), problem_of())
        self.forward(self.jit(data_type="bf16"), problem_of(), limit=1e-2)

    def test_12_masks(self):
        prob = problem_of(seqlen=48, seqlen_k=64)
        arrays = data_of(prob)
        self.forward(self.jit(), prob)
        self.right(self.jit(mask="top_left").run(*arrays, prob), softmax_attention(*arrays, visible=causal(48, 64))[0])
        self.right(self.jit(mask="bottom_right").run(*arrays, prob), softmax_attention(*arrays, visible=causal(48, 64, True))[0])
        generic = self.jit(mask="generic")
        apart = np.arange(64)[None] - np.arange(48)[:, None]
        self.right(generic.run(*arrays, prob, mask_type=1, window_left=8, window_right=2),
                   softmax_attention(*arrays, visible=(apart >= -8) & (apart <= 2))[0])
        self.right(generic.run(*arrays, prob, mask_type=3, window_left=15, window_right=0),
                   softmax_attention(*arrays, visible=(apart >= -15) & (apart <= 0))[0])

    def test_13_bias(self):
        prob = problem_of()
        arrays = data_of(prob)
        self.forward(self.jit(), prob)
        bias = (np.random.randn(1, 4, 64, 64) * 0.5).astype(np.float16)
        self.right(self.jit(bias="bias").run(*arrays, prob, bias=bias), softmax_attention(*arrays, bias=bias.astype(np.float64))[0])
        slopes = 2.0 ** -np.arange(1, 5, dtype=np.float32)
        distance = -slopes[:, None, None] * np.abs(np.arange(64)[None] - np.arange(64)[:, None])
        self.right(self.jit(bias="alibi").run(*arrays, prob, alibi_slopes=slopes), softmax_attention(*arrays, bias=distance[None])[0])

    def test_14_dropout(self):
        prob = problem_of(seqlen=128)
        arrays = data_of(prob)
        self.forward(self.jit(), prob)
        runner = self.jit(dropout=True, lse=True)
        first = runner.run(*arrays, prob, p_drop=0.2, seed=42, randval=True)
        self.assertEqual(first.output.tobytes(), runner.run(*arrays, prob, p_drop=0.2, seed=42).output.tobytes())
        self.assertNotEqual(first.output.tobytes(), runner.run(*arrays, prob, p_drop=0.2, seed=43).output.tobytes())
        threshold = int(np.float32(np.float32(0.8) * np.float32(255)))
        kept = first.randval <= threshold
        self.assertAlmostEqual(kept.mean(), 0.8, delta=0.01)
        o, lse, weights = softmax_attention(*arrays)
        np.testing.assert_allclose(first.lse, lse, atol=1e-4)
        self.right(first, weights * kept / 0.8 @ arrays[2].astype(np.float64))
        self.assertGreater(np.abs(first.output - o).max(), 0.02)

    def test_15_gqa(self):
        runner = self.jit()
        for shared in (16, 8, 4, 2, 1):
            self.forward(runner, problem_of(2, 16, 32, nhead_k=shared))

    def test_16_splitkv(self):
        self.forward(self.jit(), problem_of(2, 4, 1, seqlen_k=300))
        self.assertEqual(num_splits_heuristic_ck(2, 16, 1), 16)
        prob = problem_of(1, 4, 1, seqlen_k=256)
        q, k, v = data_of(prob)
        parts = [softmax_attention(q, k[:, :, part : part + 64], v[:, :, part : part + 64])[:2] for part in range(0, 256, 64)]
        lse = np.log(sum(np.exp(part[1]) for part in parts))
        combined = sum(np.exp(part[1] - lse)[..., None] * part[0] for part in parts)
        np.testing.assert_allclose(combined, cpu_attention_fwd(*single((q, k, v)), prob.scale), atol=1e-6)
        self.right(self.jit(family="fwd_pagedkv", pipeline="qr_pagedkv").run(q, k, v, prob, page_size=128), combined)
        split = self.jit(family="fwd_splitkv", pipeline="qr")
        for splits in (1, 4, 16):
            self.right(split.run(q, k, v, prob, num_splits=splits), combined)
        paged = self.jit(family="fwd_splitkv", pipeline="qr", paged_kv=True)
        self.right(paged.run(q, k, v, prob, paged_kv=1, page_size=128), combined)

    def test_17_appendkv(self):
        self.forward(self.jit(), problem_of(2, 4, 1, seqlen_k=65))
        prob = problem_of(2, 4, 1, nhead_k=4)
        cache = [np.zeros((2, 4, 40, 128), np.float16) for _ in range(2)]
        _, k, v = data_of(prob)
        angle = np.arange(40)[:, None] * 10000.0 ** (-np.arange(64) / 64)[None]
        tables = {"rotary_cos": np.cos(angle).astype(np.float16), "rotary_sin": np.sin(angle).astype(np.float16)}
        for rope, pair in ((None, None), ("interleaved", (slice(0, None, 2), slice(1, None, 2))), ("half_rotated", (slice(0, 64), slice(64, None)))):
            runner = self.jit(family="fwd_appendkv", pipeline="appendkv", rope=rope or "none")
            told = runner.run(data_of(prob)[0], k, v, prob, k_cache=cache[0], v_cache=cache[1], cache_seqlens=[7, 30], **(tables if rope else {}))
            self.assertTrue(told.success, told.error)
            expected = k[1].astype(np.float64)
            if rope:
                one, two, cos, sin = expected[..., pair[0]], expected[..., pair[1]], np.cos(angle[30]), np.sin(angle[30])
                expected = expected.copy()
                expected[..., pair[0]], expected[..., pair[1]] = one * cos - two * sin, one * sin + two * cos
            np.testing.assert_allclose(told.k_cache[1, :, 30], expected[:, 0], atol=2e-3)
            np.testing.assert_array_equal(told.v_cache[0, :, 7], v[0, :, 0])
            self.assertEqual(np.abs(told.k_cache[1, :, 31:]).max(), 0)

    def test_19_padding(self):
        self.forward(self.jit(), problem_of(1, 4, 100))
        lengths = np.array([64, 17, 33])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        q, k, v = (np.random.randn(starts[-1], 4, 128).astype(np.float16) * np.float16(0.3) for _ in range(3))
        prob = problem_of(3, 4, 64)
        result = self.jit(mode="group").run(q, k, v, prob, seqstart_q=starts, seqstart_k=starts)
        for b in range(3):
            own = slice(starts[b], starts[b + 1])
            part = [array[own].transpose(1, 0, 2)[None] for array in (q, k, v)]
            np.testing.assert_allclose(result.output[own].transpose(1, 0, 2), cpu_attention_fwd(*single(part), prob.scale)[0], atol=2e-3)

    def test_20_fp8(self):
        for qscale in ("no", "pertensor", "blockscale"):
            FmhaKernelConfig(data_type="fp8bf16", hdim_q=128, hdim_v=128, qscale=qscale, gfx_arch=ARCH)
        self.forward(self.jit(), problem_of())
        for dtype in ("fp8bf16", "fp8fp32"):
            self.forward(self.jit(data_type=dtype), problem_of(), limit=0.05)
        prob = problem_of()
        arrays = data_of(prob)
        result = self.jit(data_type="fp8bf16", qscale="pertensor").run(*arrays, prob, q_descale=2.0, k_descale=1.0, v_descale=0.5)
        self.right(result, 0.5 * softmax_attention(*arrays, scale=2 * prob.scale)[0], 0.05)

    def test_21_logits_soft_cap(self):
        prob = problem_of()
        arrays = data_of(prob, 3.0)
        self.forward(self.jit(), prob)
        self.right(self.jit(logits=True).run(*arrays, prob, logits_soft_cap=5.0), softmax_attention(*arrays, soft_cap=5.0)[0], 2e-2)

    def test_22_sink_tokens(self):
        prob = problem_of(seqlen=96)
        arrays = data_of(prob)
        self.forward(self.jit(), prob)
        apart = np.arange(96)[None] - np.arange(96)[:, None]
        seen = (apart <= 0) & ((apart >= -16) | (np.arange(96)[None] < 4))
        result = self.jit(mask="generic", sink=True).run(*arrays, prob, mask_type=1, window_left=16, window_right=0, has_sink=1, sink_size=4)
        self.right(result, softmax_attention(*arrays, visible=seen)[0])

    def test_23_batch_prefill(self):
        self.forward(self.jit(), problem_of(1, 16, 64, nhead_k=4, seqlen_k=256))
        prob = problem_of(2, 4, 20, nhead_k=2, seqlen_k=70)
        arrays = data_of(prob)
        for table in ("sglang", "vllm"):
            for layout, page in (("linear", 16), ("vectorized", 16), ("linear", 1)):
                runner = self.jit(family="batch_prefill", mode="group", paged_kv=True, page_size=page, kv_memory_layout=layout,
                                  kv_lookup_table=table)
                self.right(runner.run(*arrays, prob, page_size=page), softmax_attention(*arrays)[0])

    def test_24_column_major_values(self):
        prob = problem_of()
        q, k, v = data_of(prob)
        column = np.ascontiguousarray(v.transpose(0, 1, 3, 2))
        expected = cpu_attention_fwd(*single((q, k, column.transpose(0, 1, 3, 2))), prob.scale)
        self.right(self.jit().run(q, k, v, prob), expected)
        self.right(self.jit(vlayout="c", pipeline="qr").run(q, k, column, prob, is_v_rowmajor=0), expected)

    def test_25_permutation(self):
        prob = problem_of(seqlen=40, seqlen_k=56, nhead_k=2)
        q, k, v = data_of(prob)
        runner = self.jit()
        expected = cpu_attention_fwd(*single((q, k, v)), prob.scale)
        self.right(runner.run(q, k, v, prob), expected)
        turned = [np.ascontiguousarray(array.transpose(0, 2, 1, 3)) for array in (q, k, v)]
        self.right(runner.run(*turned, prob, perm=0), expected.transpose(0, 2, 1, 3))
        self.right(runner.run(*(array.transpose(0, 2, 1, 3) for array in turned), prob), expected)

    def test_26_head_sizes(self):
        for hdim in (32, 64, 128, 256):
            self.forward(self.jit(hdim_q=hdim, hdim_v=hdim), problem_of(1, 2, 40, hdim))
        prob = FmhaProblem(batch=1, nhead_q=2, nhead_k=2, seqlen_q=30, seqlen_k=30, hdim_q=192, hdim_v=128)
        self.forward(self.jit(hdim_q=192, hdim_v=128), prob)


class Sweeps(Client):
    def test_29_sequence_lengths(self):
        runner = self.jit()
        for length in (32, 64, 129, 256, 400):
            self.forward(runner, problem_of(1, 2, length))

    def test_30_batches(self):
        runner = self.jit()
        for batch in (1, 2, 4, 8, 16, 32):
            self.forward(runner, problem_of(batch, 2, 20))

    def test_31_heads(self):
        runner = self.jit()
        for heads, shared in ((1, 1), (2, 2), (32, 32), (8, 1), (16, 4), (32, 8)):
            self.forward(runner, problem_of(1, heads, 24, nhead_k=shared))

    def test_32_head_sizes(self):
        for hdim in (32, 64, 128, 256):
            prob = problem_of(1, 2, 33, hdim)
            self.assertIn(",", f"{prob.num_ops:,}")
            self.forward(self.jit(hdim_q=hdim, hdim_v=hdim), prob)


class Options(unittest.TestCase):
    def test_the_architecture_is_a_default_of_options(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--arch", default=detect_gpu_arch())
        self.assertRegex(parser.parse_args([]).arch, "^(gfx|sm_)")

    def test_every_example_has_its_client(self):
        import clients_backward_test
        kinds = (Basics, Features, Sweeps, clients_backward_test.Backward)
        numbers = sorted(int(name[5:7]) for kind in kinds for name in dir(kind) if name.startswith("test_"))
        self.assertEqual(numbers, list(range(1, 39)))


if __name__ == "__main__":
    unittest.main()
