"""Forward attention on arrays, feature by feature, against formulas written in NumPy."""

import copy
import pickle
import threading
import unittest
import unittest.mock

import numpy as np

import fmha
from common import causal, random_arrays, softmax_attention, softmax_gradients
from fmha import families, formats, memory, reference
from fmha.memory import DeviceArray

Q, K, V = random_arrays(7, (2, 4, 70, 64), (2, 2, 90, 64), (2, 2, 90, 32))


def worst(one, other):
    return float(np.abs(np.asarray(one, np.float64) - other).max())


class Forward(unittest.TestCase):
    def compare(self, expected, limit=3e-3, **options):
        result = fmha.attention(Q, K, V, lse=True, **options)
        self.assertLess(worst(result.o, expected[0]), limit)
        return result

    def test_plain(self):
        expected = softmax_attention(Q, K, V)
        result = self.compare(expected)
        self.assertLess(worst(result.lse, expected[1]), 1e-4)
        self.assertEqual((result.o.shape, result.o.dtype), ((2, 4, 70, 32), np.float16))
        self.assertIn("fwd_gfx950_fp16", result.kernel)
        self.assertGreater(result.milliseconds, 0)

    def test_masks(self):
        self.compare(softmax_attention(Q, K, V, visible=causal(70, 90)), mask="top_left")
        self.compare(softmax_attention(Q, K, V, visible=causal(70, 90, True)), mask="bottom_right")
        diagonal = np.arange(90)[None] - np.arange(70)[:, None]
        self.compare(softmax_attention(Q, K, V, visible=(diagonal >= -5) & (diagonal <= 3)), mask="top_left", window=(5, 3))
        wrong = softmax_attention(Q, K, V, visible=(diagonal >= -5) & (diagonal <= 4))
        self.assertGreater(worst(fmha.attention(Q, K, V, mask="top_left", window=(5, 3)).o, wrong[0]), 1e-2)

    def test_scale_bias_and_soft_cap(self):
        self.compare(softmax_attention(Q, K, V, scale=0.5), scale=0.5)
        (bias,) = random_arrays(3, (1, 4, 70, 90))
        self.compare(softmax_attention(Q, K, V, bias=bias.astype(np.float64)), bias=bias)
        row = bias[0, 0, :1]
        self.compare(softmax_attention(Q, K, V, bias=row.astype(np.float64)), bias=row)
        self.compare(softmax_attention(Q, K, V, soft_cap=0.7), soft_cap=0.7)
        slopes = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)
        distance = np.abs(np.arange(90)[None] - np.arange(70)[:, None] - 20)
        self.compare(softmax_attention(Q, K, V, bias=-slopes[None, :, None, None] * distance), alibi_slopes=slopes)
        of_entries = np.stack([slopes, 3 * slopes])
        self.compare(softmax_attention(Q, K, V, bias=-of_entries[:, :, None, None] * distance), alibi_slopes=of_entries)

    def test_dropout_is_replayed_and_counted(self):
        result = fmha.attention(Q, K, V, lse=True, dropout=(0.25, 11, 3), randval=True)
        self.assertAlmostEqual((result.randval < 64).mean(), 0.25, delta=0.02)
        again = fmha.attention(Q, K, V, lse=True, dropout=(0.25, 11, 3))
        self.assertEqual(result.o.tobytes(), again.o.tobytes())
        self.assertNotEqual(result.o.tobytes(), fmha.attention(Q, K, V, lse=True, dropout=(0.25, 12, 3)).o.tobytes())
        exact, _ = reference.attention(Q, K, V, data_type="fp16", dropout=(0.25, 11, 3))
        self.assertLess(worst(result.o, exact), 3e-3)

    def test_layouts(self):
        plain = fmha.attention(Q, K, V, mask="bottom_right").o
        turned = [np.ascontiguousarray(array.transpose(0, 2, 1, 3)) for array in (Q, K, V)]
        self.assertEqual(fmha.attention(*turned, mask="bottom_right", layout="bshd").o.transpose(0, 2, 1, 3).tobytes(), plain.tobytes())
        columns = np.ascontiguousarray(V.swapaxes(2, 3))
        self.assertLess(worst(fmha.attention(Q, K, columns, v_column=True).o, softmax_attention(Q, K, V)[0]), 3e-3)
        rows = [array.reshape(-1, *array.shape[2:]) for array in turned]
        packed = fmha.attention(*rows, mask="bottom_right", layout="shd", seqstart_q=[0, 70, 140], seqstart_k=[0, 90, 180], lse=True)
        self.assertEqual(packed.lse.shape, (4, 140))
        self.assertLess(worst(packed.o.reshape(2, 70, 4, 32).transpose(0, 2, 1, 3), plain), 2e-3)

    def test_sequences_of_different_lengths(self):
        q, k, v = random_arrays(4, (30, 2, 64), (50, 2, 64), (50, 2, 64))
        starts_q, starts_k = [0, 7, 30], [0, 20, 50]
        o = fmha.attention(q, k, v, layout="shd", seqstart_q=starts_q, seqstart_k=starts_k, mask="top_left").o
        for b in range(2):
            rows, keys = slice(*starts_q[b : b + 2]), slice(*starts_k[b : b + 2])
            part = [array[where].transpose(1, 0, 2)[None] for array, where in ((q, rows), (k, keys), (v, keys))]
            seen = causal(rows.stop - rows.start, keys.stop - keys.start)
            self.assertLess(worst(o[rows].transpose(1, 0, 2)[None], softmax_attention(*part, visible=seen)[0]), 3e-3)
        with self.assertRaisesRegex(ValueError, "needs seqstart_q"):
            fmha.attention(q, k, v, layout="shd")

    def test_positions_of_no_entry(self):
        """No kernel writes them; memory of the call's own is not shown as it was found."""
        dirty = lambda side, shape, dtype, fill=None: np.full(shape, 77 if fill is None else fill, dtype)
        starts = {"layout": "shd", "seqstart_q": [0, 7, 25], "seqstart_k": [0, 20, 40]}
        q, k, v = random_arrays(4, (30, 2, 64), (50, 2, 64), (50, 2, 64))
        lse = np.zeros((2, 4, 70), np.float32)
        with unittest.mock.patch.object(memory.HostSide, "new", dirty):
            result = fmha.attention(Q, K, V, seqlen_q=[30, 70], lse=True)
            packed = fmha.attention(q, k, v, lse=True, **starts)
            skipped = fmha.attention(q, k, v, lse=True, min_seqlen_q=8, **starts)
            told = fmha.attention_backward(Q, K, K, Q, lse, Q, seqlen_q=[30, 70], seqlen_k=[90, 80])
            kept = fmha.attention(Q, K, V, seqlen_q=[30, 70], out=np.full((2, 4, 70, 32), 5, np.float16)).o
        self.assertLess(worst(result.o[0, :, :30], softmax_attention(Q, K, V)[0][0, :, :30]), 3e-3)
        for o, statistics in ((result.o[0, :, 30:], result.lse[0, :, 30:]), (packed.o[25:], packed.lse[:, 25:]),
                              (skipped.o[:7], skipped.lse[:, :7])):
            self.assertTrue((o == 0).all() and (statistics == -np.inf).all())
        self.assertTrue((told.dq[0, :, 30:] == 0).all() and (told.dk[1, :, 80:] == 0).all() and (told.dv[1, :, 80:] == 0).all())
        self.assertTrue((kept[0, :, 30:] == 5).all(), "memory of the caller stays as it was")

    def test_data_types(self):
        single = [array.astype(np.float32) for array in (Q, K, V)]
        expected = softmax_attention(Q, K, V)[0]
        for name, limit, kind in (("fp32", 1e-5, np.float32), ("bf16", 2e-2, np.float32), ("fp16", 3e-3, np.float16)):
            o = fmha.attention(*single, data_type=name).o
            self.assertEqual(o.dtype, kind)
            self.assertLess(worst(o, expected), limit)
        value = [array.astype(np.float32) for array in random_arrays(8, (1, 2, 40, 64), (1, 2, 40, 64), (1, 2, 40, 64))]
        for name in ("fp8", "fp8bf16", "fp8fp32"):
            exact = reference.attention(*value, data_type=name)[0]
            self.assertLess(worst(fmha.attention(*value, data_type=name).o, exact), 0.12)
        with self.assertRaisesRegex(ValueError, "'fp8fp16' is not known"):
            fmha.attention(*value, data_type="fp8fp16")

    def test_per_tensor_descales_count(self):
        value = [array.astype(np.float32) for array in random_arrays(8, (1, 2, 40, 64), (1, 2, 40, 64), (1, 2, 40, 64))]
        scaled = fmha.attention(*value, data_type="fp8bf16", qscale="pertensor", q_descale=2, k_descale=0.5, v_descale=4).o
        plain = fmha.attention(*value, data_type="fp8bf16").o
        self.assertLess(worst(scaled, 4 * plain.astype(np.float64)), 0.1)
        with self.assertRaisesRegex(ValueError, "qscale needs k_descale"):
            fmha.attention(*value, data_type="fp8bf16", qscale="pertensor", q_descale=2)
        with self.assertRaisesRegex(ValueError, "qscale is none"):
            fmha.attention(*value, data_type="fp8bf16", q_descale=2)

    def test_wide_windows_with_alibi(self):
        for mask, left, right in (("top_left", 3, 2**32), ("bottom_right", 2**31 + 7, 2**31), ("generic", 2**60, 2**60)):
            result = fmha.attention(Q, K, V, mask=mask, window=(left, right), alibi_slopes=[0.25] * Q.shape[1], lse=True)
            rows, keys = np.arange(Q.shape[2])[:, None], np.arange(K.shape[2])
            on = rows + (K.shape[2] - Q.shape[2] if mask == "bottom_right" else 0)
            o, lse, _ = softmax_attention(Q, K, V, visible=keys >= on - left, bias=-0.25 * abs(on - keys))
            np.testing.assert_allclose(result.lse, lse, atol=1e-4, err_msg=mask)
            self.assertLess(worst(result.o, o), 3e-3)
        with self.assertRaisesRegex(fmha.Error, "M-7"):
            fmha.attention(Q, K, V, mask="generic", window=(2**31, -(2**31) - 1))

    def test_block_scales(self):
        random = np.random.default_rng(30)
        values = [formats.decode(formats.encode(array.astype(np.float32), formats.E4M3), formats.E4M3)
                  for array in random_arrays(31, (2, 150, 64), (2, 300, 64), (2, 300, 64))]

        def spread(scale, starts, size):
            """From a factor for every block of a sequence to one for every position."""
            lengths = np.diff(starts)
            parts = np.split(scale, np.cumsum(-(-lengths // size))[:-1], axis=-1)
            return np.concatenate([np.repeat(part, size, axis=-1)[..., :length] for part, length in zip(parts, lengths)], axis=-1)

        for rows, keys in (([0, 150], [0, 300]), ([0, 140, 150], [0, 20, 300])):
            several = len(rows) > 2  # else a batch of one entry
            told = {"layout": "hsd", "seqstart_q": rows, "seqstart_k": keys} if several else {}
            for name, qscale in (("fp8bf16", "blockscale"), ("mxfp8", "mx")):
                if qscale == "mx":
                    scales = [random.integers(122, 130, shape).astype(np.uint8)
                              for shape in ((1, 2, 150, 2), (1, 2, 300, 2), (1, 2, 64, sum(-(-np.diff(keys) // 32))))]
                    q, k, v = (np.exp2(scale[0] - 127.0) for scale in scales)
                    factors = [np.repeat(q, 32, axis=2), np.repeat(k, 32, axis=2), spread(v, keys, 32).swapaxes(1, 2)]
                else:
                    scales = [np.exp(random.standard_normal((1, 2, sum(-(-np.diff(starts) // 128))))).astype(np.float32) for starts in (rows, keys, keys)]
                    factors = [spread(scale[0], starts, 128)[..., None] for scale, starts in zip(scales, (rows, keys, keys))]
                q, k, v = (value * factor for value, factor in zip(values, factors))
                expected = [softmax_attention(q[None, :, slice(*row)], k[None, :, slice(*key)], v[None, :, slice(*key)])[0]
                            for row, key in zip(zip(rows, rows[1:]), zip(keys, keys[1:]))]
                arrays = [*values[:2], values[2].swapaxes(1, 2) if qscale == "mx" else values[2]]
                options = {"data_type": name, "qscale": qscale, "v_column": qscale == "mx", **told,
                           **dict(zip(("q_descale", "k_descale", "v_descale"), scales))}
                arrays = arrays if several else [array[None] for array in arrays]
                exact, _ = reference.attention(*arrays, **options)
                np.testing.assert_allclose(exact.reshape(-1, 64), np.concatenate([o.reshape(-1, 64) for o in expected]), atol=1e-6)
                o = fmha.attention(*arrays, **options).o
                self.assertLess(worst(o, np.concatenate(expected, axis=2).reshape(o.shape)), 0.05 * np.abs(exact).max())


class Caches(unittest.TestCase):
    def setUp(self):
        self.lib = fmha.load()

    def test_paged(self):
        q, k, v = random_arrays(5, (2, 4, 3, 128), (2, 2, 200, 128), (2, 2, 200, 128))
        table = np.array([[4, 1], [0, 5]], np.int32)
        pools = [np.full((6, 2, 128, 128), np.nan, np.float16) for _ in range(2)]
        lengths = np.array([200, 131], np.int32)
        for b in range(2):
            for pool, array in zip(pools, (k, v)):
                for page in range(2):
                    part = array[b, :, 128 * page : min(128 * (page + 1), lengths[b])]
                    pool[table[b, page], :, : part.shape[1]] = part
        with fmha.Context(self.lib, "gfx950") as context:
            call = families.paged(context, "gfx950", q, *pools, data_type="fp16", block_table=table, seqlens_k=lengths).run()
        for b in range(2):
            expected = softmax_attention(q[b : b + 1], k[b : b + 1, :, : lengths[b]], v[b : b + 1, :, : lengths[b]])[0]
            self.assertLess(worst(call.output("o")[b : b + 1], expected), 3e-3)

    def test_append_turns_pairs(self):
        cache, _ = random_arrays(6, (1, 1, 8, 32), (1, 1, 8, 32))
        k, v = cache.copy(), cache.copy()
        k_new, v_new = random_arrays(9, (1, 1, 2, 32), (1, 1, 2, 32))
        angle = np.arange(8)[:, None] * np.linspace(1, 0.1, 16)[None]
        with fmha.Context(self.lib, "gfx950") as context:
            families.append(context, "gfx950", k, v, k_new, v_new, data_type="fp16", seqlens_k=[3], rope="half_rotated",
                            rotary_cos=np.cos(angle).astype(np.float16), rotary_sin=np.sin(angle).astype(np.float16)).run()
        np.testing.assert_array_equal(v[:, :, 3:5], v_new)
        np.testing.assert_array_equal(k[:, :, :3], cache[:, :, :3])
        np.testing.assert_array_equal(k[:, :, 5:], cache[:, :, 5:])
        first, second = k_new[0, 0, :, :16].astype(np.float64), k_new[0, 0, :, 16:].astype(np.float64)
        cos, sin = np.cos(angle[3:5]), np.sin(angle[3:5])
        np.testing.assert_allclose(k[0, 0, 3:5, :16], first * cos - second * sin, atol=2e-3)
        np.testing.assert_allclose(k[0, 0, 3:5, 16:], first * sin + second * cos, atol=2e-3)
        with self.assertRaisesRegex(ValueError, "rotary_cos"):
            families.append(fmha.Context(self.lib, "gfx950"), "gfx950", k, v, k_new, v_new, data_type="fp16", seqlens_k=[3], rope=1)


    def test_splits_give_the_whole(self):
        q, k, v = random_arrays(5, (2, 4, 3, 128), (2, 2, 200, 128), (2, 2, 200, 128))
        expected = softmax_attention(q, k, v, visible=causal(3, 200, True))
        with fmha.Context(self.lib, "gfx950") as context:
            for splits in (0, 1, 3, 4):
                call = families.splitkv(context, "gfx950", q, k, v, data_type="fp16", num_splits=splits, mask="bottom_right", lse=True).run()
                self.assertLess(worst(call.output("o"), expected[0]), 3e-3)
                self.assertLess(worst(call.output("lse"), expected[1]), 1e-4)
                self.assertIn(" + fwd_splitkv_combine", call.kernel)
            rows = [np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(-1, array.shape[1], 128) for array in (q, k, v)]
            call = families.splitkv(context, "gfx950", *rows, data_type="fp16", num_splits=3, mask="bottom_right", layout="shd",
                                    seqstart_q=[0, 3, 6], seqstart_k=[0, 200, 400]).run()
            self.assertLess(worst(call.output("o").reshape(2, 3, 4, 128).transpose(0, 2, 1, 3), expected[0]), 3e-3)


class Backward(unittest.TestCase):
    def test_shared_heads_are_added_in_single_precision(self):
        of_heads = np.array([2048, 1, 1, 4096, -2, -2], np.float16).reshape(1, 6, 1, 1)  # in half precision 2048 + 1 is 2048
        sums = families.shared_heads(np.tile(of_heads, (1, 1, 3, 8)), 2)
        self.assertEqual((sums.shape, sums.dtype, np.unique(sums[:, 0]).tolist(), np.unique(sums[:, 1]).tolist()),
                         ((1, 2, 3, 8), np.float16, [2050], [4092]))

    def gradients(self, data_type, limit, visible=None, **options):
        q, k, v, d_o = random_arrays(11, (2, 4, 40, 64), (2, 2, 50, 64), (2, 2, 50, 64), (2, 4, 40, 64), dtype=np.float32)
        mask = {"mask": options["mask"]} if "mask" in options else {}
        forward = fmha.attention(q, k, v, data_type=data_type, lse=True, **mask)
        got = fmha.attention_backward(q, k, v, forward.o.astype(np.float32), forward.lse, d_o, data_type=data_type, **options)
        for name, expected in zip(("dq", "dk", "dv"), softmax_gradients(q, k, v, d_o, visible=visible)):
            self.assertEqual(getattr(got, name).shape, expected.shape)
            self.assertLess(worst(getattr(got, name), expected), limit, name)
        return got

    def test_gradients(self):
        got = self.gradients("fp32", 1e-4)
        self.assertRegex(got.kernel, "bwd_dot_do_o_.* \\+ bwd_dq_dk_dv_")
        self.gradients("fp16", 2e-2)
        self.gradients("bf16", 0.15, visible=causal(40, 50), mask="top_left")

    def test_deterministic_gradients_repeat(self):
        one, two = (self.gradients("fp16", 2e-2, deterministic=True) for _ in range(2))
        self.assertEqual(one.dq.tobytes(), two.dq.tobytes())

    def test_gradients_of_key_heads(self):
        self.gradients("fp16", 2e-2, reduce_dk_dv=True)
        q, k, d_o = random_arrays(15, (1, 6, 20, 64), (1, 2, 30, 64), (1, 6, 20, 64))
        lse = np.full((1, 6, 20), 3.0, np.float32)
        sums = reference.gradients(q, k, k, q, lse, d_o, data_type="fp16")
        with fmha.Context(fmha.load(), "gfx950") as context:
            call = families.backward(context, "gfx950", q, k, k, q, lse, d_o, data_type="fp16", reduce_dk_dv=True).run()
        reduced = reference.gradients(q, k, k, q, lse, d_o, data_type="fp16", reduce_dk_dv=True)
        for name in ("dk", "dv"):
            self.assertEqual(call.output(name).shape, (1, 2, 30, 64))
            self.assertLess(worst(call.output(name), sums[name]), 2e-2, name)
            self.assertLess(worst(reduced[name], sums[name]), 1e-12, name)

    def test_packed_sequences(self):
        q, k, v, d_o = random_arrays(12, (30, 2, 64), (50, 2, 64), (50, 2, 64), (30, 2, 64), dtype=np.float32)
        starts = {"seqstart_q": [0, 7, 30], "seqstart_k": [0, 20, 50], "layout": "shd"}
        forward = fmha.attention(q, k, v, lse=True, **starts)
        got = fmha.attention_backward(q, k, v, forward.o, forward.lse, d_o, **starts)
        for b in range(2):
            rows, keys = slice(*starts["seqstart_q"][b : b + 2]), slice(*starts["seqstart_k"][b : b + 2])
            part = [array[own].transpose(1, 0, 2)[None] for array, own in ((q, rows), (k, keys), (v, keys), (d_o, rows))]
            for name, own, expected in zip(("dq", "dk", "dv"), (rows, keys, keys), softmax_gradients(*part)):
                self.assertLess(worst(getattr(got, name)[own].transpose(1, 0, 2)[None], expected), 1e-4, name)

    def test_partial_sums_begin_at_a_line(self):
        lib = fmha.load()
        args = lib.arguments(fmha.BWD)
        args.shape.batch = 3
        for group, deterministic, header in ((0, 0, 16), (0, 1, 16), (1, 0, 16), (1, 1, 16 + 32)):
            args.shape.mode, args.deterministic = group, deterministic
            for address in (0, 16, 112, 256, 1000 * 16):
                place = fmha.workspace_place(args, address)
                self.assertEqual((place + header) % 128, 0)
                self.assertTrue(address <= place < address + 128)

    def test_offsets_on_the_host_make_the_workspace_exact(self):
        q, k = random_arrays(16, (30, 2, 64), (50, 2, 64))
        lse = np.zeros((2, 30), np.float32)
        starts = {"seqstart_q": [0, 7, 30], "seqstart_k": [0, 20, 50], "layout": "shd"}
        with fmha.Context(fmha.load(), "gfx950") as context:
            call = families.backward(context, "gfx950", q, k, k, q, lse, q, data_type="fp16", deterministic=True, **starts)
            size, exact = context.workspace_size(call.args)
            self.assertTrue(exact)
            call.args.host_seqstart_q = call.args.host_seqstart_k = None
            bound, exact = context.workspace_size(call.args)
            self.assertFalse(exact)
            self.assertLess(size, bound)

    def test_a_bias_has_a_gradient(self):
        q, k, v, d_o = random_arrays(13, (1, 2, 20, 64), (1, 2, 30, 64), (1, 2, 30, 64), (1, 2, 20, 64), dtype=np.float32)
        (bias,) = random_arrays(14, (1, 2, 20, 30), dtype=np.float32)
        forward = fmha.attention(q, k, v, bias=bias, lse=True)
        got = fmha.attention_backward(q, k, v, forward.o, forward.lse, d_o, bias=bias, dbias=True)
        loss = lambda bias: (softmax_attention(q, k, v, bias=bias)[0] * d_o).sum()
        step = np.zeros_like(bias, np.float64)
        step[0, 1, 5, 7] = 1e-4
        self.assertAlmostEqual(got.dbias[0, 1, 5, 7], (loss(bias + step) - loss(bias - step)) / 2e-4, delta=1e-3)


class Contexts(unittest.TestCase):
    def test_kernels_can_be_kept(self):
        with fmha.Context(fmha.load(), "gfx942") as context:
            everything = context.kernel_count()
            context.keep("c.family == 'fwd' and c.hdim_q == 64 and c.data_type == 'bf16'")
            self.assertLess(context.kernel_count(), everything)
            self.assertEqual({kernel["signature"]["hdim_q"] for kernel in context.kernels()}, {64})
            self.assertEqual(len(context.kernels()), context.kernel_count())
            kept = context.kernel_count()
            with self.assertRaises(fmha.Error) as caught:
                context.keep("c.hdim_q == 128")
            self.assertEqual(caught.exception.status, 3)
            self.assertEqual(context.kernel_count(), kept, "a filter that leaves none must change nothing")
            with self.assertRaisesRegex(fmha.Error, "hdmi"):
                context.keep("c.hdmi == 128")
            value = random_arrays(1, (1, 1, 8, 64), (1, 1, 8, 64), (1, 1, 8, 64), dtype=np.float32)
            self.assertIn("h64x64", fmha.attention(*value, data_type="bf16", context=context).kernel)
            with self.assertRaisesRegex(fmha.Error, "no complete plan"):
                fmha.attention(*value, data_type="fp16", context=context)

    def test_a_filter_is_text(self):
        with fmha.Context(fmha.load(), "gfx950") as context:
            with self.assertRaisesRegex(ValueError, "where is 5; a name is needed"):
                context.keep(5)

    def test_a_plan_is_explained(self):
        with fmha.Context(fmha.load(), "gfx950") as context:
            call = families.forward(context, "gfx950", Q, K, V, data_type="fp16")
            text = context.explain(call.args)
            self.assertIn(context.plan(call.args).kernel.decode(), text)
            self.assertIn("policy seqtune", text)
            with self.assertRaisesRegex(fmha.Error, "no device"):
                context.allocate(16)

    def test_threads_may_share_one(self):
        wrong = []

        def ask(context, keys):
            for _ in range(150):
                try:
                    fmha.attention(Q, K, V, context=context, seqlen_k=[keys, 1])
                except fmha.Error as error:
                    if not str(error).startswith(f"BAD_PROBLEM: N-1: seqlen_k of entry 0 is {keys};"):
                        wrong.append(str(error))

        with fmha.Context(fmha.load(), "gfx950") as context:
            threads = [threading.Thread(target=ask, args=(context, keys)) for keys in (91, 92, 93, 94)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_a_copy_would_free_it_twice(self):
        with fmha.Context(fmha.load(), "gfx950") as context:
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "make another one instead of a copy"):
                    copied(context)
        with self.assertRaisesRegex(TypeError, "owns its memory"):
            copy.copy(DeviceArray.__new__(DeviceArray))  # without a device there is none

    def test_an_error_goes_to_another_process_whole(self):
        with self.assertRaises(fmha.Error) as caught:
            fmha.attention(Q, K, V, seqlen_k=[91, 1])
        other = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(other), other.status, other.rule), (str(caught.exception), 2, "N-1"))


if __name__ == "__main__":
    unittest.main()
