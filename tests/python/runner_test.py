"""Runs by the conventions of fmha_utils: every keyword counts, and a call that cannot be right says why."""

import ctypes
import gc
import threading
import unittest
import warnings
import weakref

import numpy as np

from common import causal, random_arrays, softmax_attention, softmax_gradients
from fmha_utils import (FmhaDispatcherLib, FmhaKernelConfig, FmhaProblem, FmhaRunner, FmhaValidator, cleanup_fmha, cpu_attention_fwd,
                        reset_for_example, setup_fmha_dispatcher, setup_multiple_fmha_dispatchers)
from fmha import formats

PROBLEM = FmhaProblem(batch=2, nhead_q=4, nhead_k=2, seqlen_q=33, seqlen_k=50, hdim_q=64, hdim_v=64)
Q, K, V = random_arrays(31, PROBLEM.q_shape(), PROBLEM.k_shape(), PROBLEM.v_shape())


def runner_of(**fields):
    result = setup_fmha_dispatcher(FmhaKernelConfig(**{"hdim_q": 64, "hdim_v": 64, "gfx_arch": "gfx950"} | fields))
    assert result.success, result.error
    return result.runner


class Case(unittest.TestCase):
    def right(self, result, expected, limit=3e-3):
        self.assertTrue(result.success, result.error)
        self.assertEqual(result.error, "")
        self.assertLess(np.abs(np.asarray(result.output, np.float64) - expected).max(), limit)
        return result

    def refused(self, result, words):
        self.assertFalse(result.success)
        self.assertIsNone(result.output)
        self.assertRegex(result.error, words)


class Forward(Case):
    @classmethod
    def setUpClass(cls):
        cls.plain, cls.masked = runner_of(), runner_of(mask="top_left", lse=True)

    def test_four_arguments(self):
        result = self.right(self.plain.run(Q, K, V, PROBLEM), softmax_attention(Q, K, V)[0])
        self.assertGreater(result.time_ms, 0)
        self.assertAlmostEqual(result.tflops, PROBLEM.num_ops / (result.time_ms * 1e-3) / 1e12)
        self.assertEqual(result.output.dtype, np.float16)
        self.assertEqual(self.plain.kernel_count, 1)
        self.assertIn("h64x64", result.kernel)

    def test_the_configuration_is_the_default(self):
        result = self.right(self.masked.run(Q, K, V, PROBLEM), softmax_attention(Q, K, V, visible=causal(33, 50))[0])
        np.testing.assert_allclose(result.lse, softmax_attention(Q, K, V, visible=causal(33, 50))[1], atol=1e-4)
        self.assertLess(result.work_tflops, 0.5 * result.tflops)

    def test_an_argument_wins_and_a_conflict_is_an_error(self):
        self.right(self.masked.run(Q, K, V, PROBLEM, mask_type=2), softmax_attention(Q, K, V, visible=causal(33, 50, True))[0])
        self.right(runner_of(mask="generic").run(Q, K, V, PROBLEM, mask_type="bottom_right", window_left=4, window_right=0),
                   softmax_attention(Q, K, V, visible=_window(33, 50, 4))[0])
        self.refused(self.masked.run(Q, K, V, PROBLEM, mask_type=2, window_left=4, window_right=0), "mask is generic, this kernel has causal")
        self.refused(self.plain.run(Q, K, V, PROBLEM, mask_type=1), "mask")
        self.refused(self.plain.run(Q, K, V, PROBLEM, has_lse=1), "LSE|lse")
        self.refused(self.plain.run(Q, K, V, PROBLEM, data_type="bf16"), "no complete plan for fwd bf16")

    def test_shapes_are_compared_with_the_problem(self):
        self.refused(self.plain.run(Q, K[:, :, :9], V, PROBLEM), r"K has shape \(2, 2, 9, 64\), the problem needs \(2, 2, 50, 64\)")
        self.refused(self.plain.run(Q, K, V, FmhaProblem()), "Q has shape")
        self.refused(self.plain.run(Q, K, V, FmhaProblem(2, 4, 3, 33, 50, 64, 64)), "K has shape|H-1")

    def test_features_without_their_data_are_errors(self):
        for options, words in (({"has_dropout": 1}, "has_dropout is 1, and p_drop is not given"), ({"has_logits": True}, "logits_soft_cap"),
                               ({"bias_type": 1}, "bias_type is 1, and bias is not given"), ({"bias_type": 2}, "alibi_slopes"),
                               ({"has_sink": 1}, "has_sink needs"), ({"p_drop": 0.2}, "has_dropout is 0"), ({"mask_type": 7}, "mask_type 7"),
                               ({"data_type": "fp12"}, "'fp12' is not known")):
            self.refused(self.plain.run(Q, K, V, PROBLEM, **options), words)

    def test_unknown_families_and_keywords(self):
        for family in ("bwd", "bwd_dq_dk_dv", "nonsense"):
            self.refused(self.plain.run(Q, K, V, PROBLEM, api_family=family), f"'{family}' is not known; allowed: fwd, splitkv")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self.right(self.plain.run(Q, K, V, PROBLEM, widnow_left=3), softmax_attention(Q, K, V)[0])
        self.assertIn("ignores widnow_left", str(seen[0].message))

    def test_scale_and_layouts(self):
        self.right(self.plain.run(Q, K, V, PROBLEM, scale=0.3), softmax_attention(Q, K, V, scale=0.3)[0])
        turned = [array.transpose(0, 2, 1, 3) for array in (Q, K, V)]
        self.right(self.plain.run(*turned, PROBLEM, perm=0), softmax_attention(Q, K, V)[0].transpose(0, 2, 1, 3))
        column = runner_of(vlayout="c", pipeline="qr")
        self.right(column.run(Q, K, np.ascontiguousarray(V.swapaxes(2, 3)), PROBLEM), softmax_attention(Q, K, V)[0])
        self.refused(column.run(Q, K, V, PROBLEM), "V has shape")

    def test_group_mode(self):
        group = runner_of(mode="group", mask="bottom_right")
        self.right(group.run(Q, K, V, PROBLEM), softmax_attention(Q, K, V, visible=causal(33, 50, True))[0])
        rows = [np.concatenate([array[0].transpose(1, 0, 2), array[1].transpose(1, 0, 2)]) for array in (Q, K, V)]
        result = self.right(group.run(*rows, PROBLEM, seqstart_q=[0, 20, 66], seqstart_k=[0, 40, 100]),
                            _packed(rows, [0, 20, 66], [0, 40, 100]))
        self.assertEqual(result.output.shape, (66, 4, 64))

    def test_features(self):
        (bias,) = random_arrays(2, (2, 4, 33, 50))
        self.right(runner_of(bias="bias", pipeline="qr").run(Q, K, V, PROBLEM, bias=bias),
                   softmax_attention(Q, K, V, bias=bias.astype(np.float64))[0])
        slopes = np.float32([0.5, 0.25, 0.1, 0.05])
        distance = np.abs(np.arange(50)[None] - np.arange(33)[:, None] - 17)
        self.right(runner_of(bias="alibi").run(Q, K, V, PROBLEM, alibi_slopes=slopes),
                   softmax_attention(Q, K, V, bias=-slopes[None, :, None, None].astype(np.float64) * distance)[0])
        self.right(runner_of(logits=True).run(Q, K, V, PROBLEM, logits_soft_cap=0.5), softmax_attention(Q, K, V, soft_cap=0.5)[0])
        drop = runner_of(dropout=True, lse=True)
        result = drop.run(Q, K, V, PROBLEM, p_drop=0.5, seed=4, randval=True)
        self.assertTrue(result.success, result.error)
        self.assertEqual(result.randval.shape, (2, 4, 33, 50))
        kept = result.randval <= 127
        weights = softmax_attention(Q, K, V)[2] * kept * 2
        np.testing.assert_allclose(result.output, weights @ np.repeat(V, 2, 1).astype(np.float64), atol=8e-3)

    def test_data_types(self):
        expected = cpu_attention_fwd(*(array.astype(np.float32) for array in (Q, K, V)), PROBLEM.scale)
        for name, kind, limit in (("bf16", np.float32, 1e-2), ("fp32", np.float32, 2e-3), ("fp8bf16", np.float32, 0.1), ("fp8fp32", np.float32, 0.1)):
            result = runner_of(data_type=name).run(Q, K, V, PROBLEM)
            self.right(result, expected, limit)
            self.assertEqual(result.output.dtype, kind)
        codes = [formats.encode(array, formats.E4M3) for array in (Q, K, V)]
        self.right(runner_of(data_type="fp8fp32").run(*codes, PROBLEM), expected, 0.1)
        bits = [formats.encode(array.astype(np.float32), formats.BF16) for array in (Q, K, V)]
        self.right(runner_of(data_type="bf16").run(*bits, PROBLEM), expected, 1e-2)


class Caches(Case):
    def test_paged(self):
        problem = FmhaProblem(2, 4, 2, 5, 200, 128, 128)
        q, k, v = random_arrays(3, problem.q_shape(), problem.k_shape(), problem.v_shape())
        for mode in ("batch", "group"):
            runner = runner_of(family="fwd_pagedkv", mode=mode, hdim_q=128, hdim_v=128, pipeline="qr_pagedkv")
            for name in (None, "pagedkv", "fwd_pagedkv"):
                self.right(runner.run(q, k, v, problem, api_family=name), softmax_attention(q, k, v)[0])
        pages = [np.zeros((6, 2, 128, 128), np.float16) for _ in range(2)]
        for pool, array in zip(pages, (k, v)):
            for b, table in enumerate(((5, 0), (2, 4))):
                pool[table[0]], pool[table[1], :, :72] = array[b, :, :128], array[b, :, 128:]
        runner = runner_of(family="fwd_pagedkv", hdim_q=128, hdim_v=128)
        self.right(runner.run(q, *pages, problem, block_table=np.int32([[5, 0], [2, 4]]), seqlens_k=[200, 200]),
                   softmax_attention(q, k, v)[0])

    def test_append(self):
        problem = FmhaProblem(2, 4, 2, 1, 3, 128, 128)
        _, k, v = random_arrays(3, problem.q_shape(), problem.k_shape(), problem.v_shape())
        cache = random_arrays(4, (2, 2, 16, 128), (2, 2, 16, 128))
        runner = runner_of(family="fwd_appendkv", hdim_q=128, hdim_v=128, pipeline="appendkv")
        result = runner.run(None, k, v, problem, k_cache=cache[0], v_cache=cache[1], cache_seqlens=[4, 9])
        self.assertTrue(result.success, result.error)
        for got, old, new in ((result.k_cache, cache[0], k), (result.v_cache, cache[1], v)):
            expected = old.copy()
            expected[0, :, 4:7], expected[1, :, 9:12] = new[0], new[1]
            np.testing.assert_array_equal(got, expected)
        self.assertEqual((result.tflops, result.output.shape), (0.0, problem.o_shape()))
        alone = runner.run(None, k, v, problem)
        np.testing.assert_array_equal(alone.k_cache, k)
        self.refused(runner.run(None, k, v, problem, k_cache=cache[0], v_cache=cache[1], cache_seqlens=[14, 0]), "V-3|room")


class Pointers(Case):
    """FmhaDispatcherLib: addresses of dense arrays, heads shared."""

    def setUp(self):
        self.lib = FmhaDispatcherLib.find()
        self.assertTrue(self.lib.initialize("gfx950"), self.lib.error)
        self.addCleanup(self.lib.cleanup)

    @staticmethod
    def pointers(*arrays):
        return [ctypes.c_void_p(array.ctypes.data) for array in arrays]

    def refused_by(self, call, words, *arguments, **options):
        self.assertEqual(call(*arguments, **options), (-2, 0.0))
        self.assertRegex(self.lib.error, words)

    def gradients(self, expected, arrays, limit=2e-2, **options):
        out = [np.full(shape, 7, np.float16) for shape in (PROBLEM.q_shape(), PROBLEM.k_shape(), PROBLEM.v_shape())]
        status, milliseconds = self.lib.run_bwd(*self.pointers(*arrays, *out), PROBLEM, **options)
        self.assertEqual((status, self.lib.error), (0, ""))
        self.assertGreater(milliseconds, 0)
        for got, one in zip(out, expected):
            np.testing.assert_allclose(got, one, atol=limit)

    def test_before_it_is_initialised(self):
        fresh = FmhaDispatcherLib.find()
        self.assertEqual(fresh.run_bwd(*[0] * 9, PROBLEM), (-1, 0.0))
        self.assertEqual(fresh.run_fwd(*[0] * 4, PROBLEM), (-1, 0.0))
        self.assertIn("initialize", fresh.error)
        self.assertTrue(fresh.initialize("gfx950"))
        self.assertEqual(fresh.run_fwd(*[0] * 4, None), (-2, 0.0))
        self.assertEqual(fresh.error, "prob is a NoneType; needed: FmhaProblem")
        self.assertEqual(fresh.run_fwd(*[8] * 4, FmhaProblem(batch=-1)), (-2, 0.0))
        self.assertIn("prob.batch is -1", fresh.error)
        self.assertFalse(fresh.initialize("gfx000"))
        self.assertIn("gfx000", fresh.error)

    def test_forward(self):
        o = np.full(PROBLEM.o_shape(), 7, np.float16)
        pointers = self.pointers(Q, K, V, o)
        for mask, visible in ((0, None), (1, causal(33, 50)), (2, causal(33, 50, True))):
            status, milliseconds = self.lib.run_fwd(*pointers, PROBLEM, mask, 0, 1, 0, 64, 0)
            self.assertEqual((status, self.lib.error), (0, ""))
            self.assertGreater(milliseconds, 0)
            np.testing.assert_allclose(o, softmax_attention(Q, K, V, visible=visible)[0], atol=3e-3)
        (bias,) = random_arrays(2, (2, 4, 33, 50))
        self.assertEqual(self.lib.run_fwd(*pointers, PROBLEM, bias_type=1, bias=bias)[0], 0)
        np.testing.assert_allclose(o, softmax_attention(Q, K, V, bias=bias.astype(np.float64))[0], atol=3e-3)
        bits = [formats.encode(array.astype(np.float32), formats.BF16) for array in (Q, K, V)]
        o_bits = np.zeros(PROBLEM.o_shape(), np.uint16)
        self.assertEqual(self.lib.run_fwd(*self.pointers(*bits, o_bits), PROBLEM, data_type="bf16")[0], 0)
        np.testing.assert_allclose(formats.decode(o_bits, formats.BF16), softmax_attention(Q, K, V)[0], atol=1e-2)

    def test_what_forward_cannot_know_is_said(self):
        pointers = self.pointers(Q, K, V, np.empty(PROBLEM.o_shape(), np.float16))
        for options, words in (({"bias_type": 1}, "bias is not given"), ({"has_dropout": 1}, "p_drop is not given"),
                               ({"traits_hdim_q": 128}, "traits_hdim_q is 128, and the arrays have 64 channels"),
                               ({"data_type": "fp12"}, "'fp12' is not known")):
            self.refused_by(self.lib.run_fwd, words, *pointers, PROBLEM, **options)
        self.refused_by(self.lib.run_fwd, "a pointer is NULL", *pointers[:3], None, PROBLEM)

    def test_gradients(self):
        (d_o,) = random_arrays(3, PROBLEM.o_shape())
        for options, visible in (({"mask_type": 1}, causal(33, 50)), ({"is_group_mode": True, "is_deterministic": True}, None)):
            o, lse, _ = softmax_attention(Q, K, V, visible=visible)
            arrays = [Q, K, V, o.astype(np.float16), lse.astype(np.float32), d_o]
            self.gradients(softmax_gradients(Q, K, V, d_o, visible=visible), arrays, **options)

    def test_gradients_with_their_data(self):
        forward = FmhaRunner.from_prebuilt("gfx950").run(Q, K, V, PROBLEM, has_lse=1, has_dropout=1, p_drop=0.25, seed=3, randval=True)
        self.assertTrue(forward.success, forward.error)
        (d_o,) = random_arrays(3, PROBLEM.o_shape())
        arrays = [Q, K, V, forward.output, forward.lse, d_o]
        kept = (forward.randval <= int(np.float32(np.float32(0.75) * np.float32(255)))) / 0.75
        d_v = ((softmax_attention(Q, K, V)[2] * kept).swapaxes(-1, -2) @ d_o.astype(np.float64)).reshape(2, 2, 2, 50, 64).sum(2)
        out = [np.zeros(shape, np.float16) for shape in (PROBLEM.q_shape(), PROBLEM.k_shape(), PROBLEM.v_shape())]
        pointers = self.pointers(*arrays, *out)
        self.assertEqual(self.lib.run_bwd(*pointers, PROBLEM, has_dropout=True, p_drop=0.25, seed=3)[0], 0, self.lib.error)
        np.testing.assert_allclose(out[2], d_v, atol=2e-2)
        out[2][...] = 7
        self.assertEqual(self.lib.run_bwd(*pointers, PROBLEM, has_dropout=True, p_drop=0.25, seed=9, randval=forward.randval)[0], 0, self.lib.error)
        np.testing.assert_allclose(out[2], d_v, atol=2e-2)
        for options, words in (({"has_dropout": True}, "p_drop is not given"), ({"bias_type": 2}, "alibi_slopes is not given"),
                               ({"has_dbias": True}, "has_dbias asks for an output"), ({"is_store_randval": True}, "is_store_randval")):
            self.refused_by(self.lib.run_bwd, words, *pointers, PROBLEM, **options)
        self.refused_by(self.lib.run_bwd, "H-1|nhead", *pointers, FmhaProblem(2, 4, 3, 33, 50, 64, 64))


class Lifetime(Case):
    def test_cleanup(self):
        runner = runner_of()
        runner.cleanup()
        runner.cleanup()
        self.refused(runner.run(Q, K, V, PROBLEM), "rc=-1.*cleaned up")
        self.assertEqual(runner.kernel_count, 0)

    def test_all_runners_at_once(self):
        opened, lib = runner_of(), FmhaDispatcherLib.find()
        lazy = setup_multiple_fmha_dispatchers([FmhaKernelConfig(hdim_q=64, hdim_v=64, gfx_arch="gfx950")])[0].runner
        self.assertTrue(opened.run(Q, K, V, PROBLEM).success and lib.initialize("gfx950"))
        for release in (cleanup_fmha, reset_for_example, cleanup_fmha):
            self.assertIsNone(release())
            for runner in (opened, lazy):
                self.refused(runner.run(Q, K, V, PROBLEM), "rc=-1.*cleaned up")
                self.assertEqual(runner.kernel_count, 0)
        self.assertEqual((lib.kernel_count(), lib.run_fwd(*[0] * 4, PROBLEM)), (0, (-1, 0.0)))
        self.right(runner_of().run(Q, K, V, PROBLEM), softmax_attention(Q, K, V)[0])

    def test_releasing_all_waits_for_a_run_and_never_raises(self):
        class Broken(FmhaRunner):
            def cleanup(self):
                raise OSError("a lost device")

        broken = Broken._over(lambda: None, "", "gfx950", None)
        runners, results = [runner_of() for _ in range(3)], []
        threads = [threading.Thread(target=lambda runner=runner: results.extend(runner.run(Q, K, V, PROBLEM) for _ in range(20)))
                   for runner in runners]
        for thread in threads:
            thread.start()
        cleanup_fmha()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), 60)
        for result in results:
            if result.success:
                self.right(result, softmax_attention(Q, K, V)[0])
            else:
                self.refused(result, "rc=-1.*cleaned up")
        self.assertFalse(broken.released)

    def test_a_runner_that_nobody_holds_is_gone(self):
        runner = weakref.ref(runner_of())
        gc.collect()
        self.assertIsNone(runner())

    def test_runners_are_independent(self):
        first = setup_fmha_dispatcher(FmhaKernelConfig(hdim_q=64, hdim_v=64, gfx_arch="gfx950"))
        second = FmhaRunner.from_library(first.library_path)
        first.runner.cleanup()
        self.right(second.run(Q, K, V, PROBLEM), softmax_attention(Q, K, V)[0])
        self.assertEqual(second.library_path, first.library_path)

    def test_threads_share_a_runner(self):
        runner, outputs = runner_of(), [None] * 4

        def work(i):
            outputs[i] = runner.run(Q, K, V, PROBLEM).output

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({output.tobytes() for output in outputs}, {outputs[0].tobytes()})

    def test_contexts_go_with_their_runner(self):
        runner = runner_of()
        context = runner._opened()
        del runner
        gc.collect()
        self.assertTrue(context.handle)  # still held here
        context.close()
        self.assertFalse(context.handle)

    def test_all_kernels(self):
        runner = FmhaRunner.from_prebuilt("gfx942")
        self.assertGreater(runner.kernel_count, 1000)
        self.right(runner.run(Q, K, V, PROBLEM, mask_type=1), softmax_attention(Q, K, V, visible=causal(33, 50))[0])
        lib = FmhaDispatcherLib.find()
        again = FmhaRunner.from_library(str(lib.path), "gfx942")
        self.right(again.run(Q, K, V, PROBLEM), softmax_attention(Q, K, V)[0])
        with self.assertRaises(RuntimeError):
            FmhaRunner(lib, "gfx000")
        with self.assertRaises(OSError):
            FmhaRunner.from_library("/nonexistent/library.so")
        self.assertEqual(lib.kernel_count(), 0)
        self.assertTrue(lib.initialize("gfx950") and lib.kernel_count() > 0)
        lib.cleanup()
        self.assertEqual((lib.kernel_count(), lib.initialize("gfx000")), (0, False))


def _window(rows, keys, left):
    diagonal = np.arange(keys)[None] - np.arange(rows)[:, None] - (keys - rows)
    return (diagonal <= 0) & (diagonal >= -left)


def _packed(rows, starts_q, starts_k):
    parts = []
    for b in range(len(starts_q) - 1):
        own_q, own_k = slice(*starts_q[b : b + 2]), slice(*starts_k[b : b + 2])
        part = [array[own].transpose(1, 0, 2)[None] for array, own in zip(rows, (own_q, own_k, own_k))]
        seen = causal(own_q.stop - own_q.start, own_k.stop - own_k.start, True)
        parts.append(softmax_attention(*part, visible=seen)[0][0].transpose(1, 0, 2))
    return np.concatenate(parts)


class Validation(Case):
    def test_a_wrong_output_is_noticed(self):
        result = runner_of().run(Q, K, V, PROBLEM)
        expected = cpu_attention_fwd(*(array.astype(np.float32) for array in (Q, K, V)), PROBLEM.scale)
        self.assertTrue(FmhaValidator().check(result.output, expected)[0])
        wrong = result.output.copy()
        wrong[1, 2, 3, 4] += np.float16(0.05)
        self.assertFalse(FmhaValidator().check(wrong, expected)[0])


if __name__ == "__main__":
    unittest.main()
