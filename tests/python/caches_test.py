"""Caches of keys and values as engines keep them: halves of one array, other orders of axes, memory that is changed in place."""

import unittest

import numpy as np

import fmha
from client import ARCH, Client, problem_of
from common import CudaArray, DlTensor, random_arrays, softmax_attention
from fmha import families, reference
from fmha.tensors import view_of

TABLE, KEYS, ROWS = [[8, 1], [0, 3]], [21, 32], [0, 3, 7]


class Pools(unittest.TestCase):
    """Pages of batch prefill with the strides that they have."""

    @classmethod
    def setUpClass(cls):
        cls.context = fmha.Context(fmha.load(), ARCH)
        cls.q, cls.k, cls.v = random_arrays(21, (7, 4, 64), (9, 2, 16, 64), (9, 2, 16, 32))

    def call(self, k, v, **options):
        return families.batch_prefill(self.context, ARCH, self.q, k, v, data_type="fp16", page_size=16, page_count=9, seqstart_q=ROWS,
                                      block_table=TABLE, seqlens_k=KEYS, max_seqlen_k=32, **options)

    def right(self, k, v, **options):
        o = self.call(k, v, **options).run().output("o")
        for b, (pages, keys) in enumerate(zip(TABLE, KEYS)):
            k_of, v_of = (np.concatenate([pool[page] for page in pages], axis=1)[None, :, :keys] for pool in (self.k, self.v))
            rows = slice(*ROWS[b : b + 2])
            expected = softmax_attention(self.q[rows].transpose(1, 0, 2)[None], k_of, v_of)[0]
            np.testing.assert_allclose(o[rows].transpose(1, 0, 2)[None], expected, atol=2e-3)

    def test_linear(self):
        self.right(self.k, self.v)
        self.right(*(np.ascontiguousarray(pool.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for pool in (self.k, self.v)))
        cache = np.full((9, 2, 2, 16, 64), np.nan, np.float16)
        cache[:, 0], cache[:, 1, ..., :32] = self.k, self.v
        self.right(cache[:, 0], cache[:, 1, ..., :32])

    def test_vectorized(self):
        k = self.k.reshape(9, 2, 16, 8, 8).swapaxes(2, 3)
        v = self.v.reshape(9, 2, 2, 8, 32).swapaxes(3, 4)
        packed = [np.ascontiguousarray(pool) for pool in (k, v)]
        for pools in (packed, (k, v), [np.stack([pool, pool], 1)[:, 1] for pool in packed]):
            self.right(*pools, kv_layout="vectorized")
        with self.assertRaisesRegex(ValueError, "k on the device has strides .* must be packed"):
            self.call(self.k, self.v).vectorized_pages("k", view_of(CudaArray(k)))

    def test_pages_have_the_size_that_is_said(self):
        with self.assertRaisesRegex(ValueError, r"k has shape \(18, 2, 8, 64\); 9 pages of 16 keys and 2 heads have \(9, 2, 16, 64\)"):
            self.call(self.k.reshape(18, 2, 8, 64), self.v)


class Far(unittest.TestCase):
    """Keys whose position a float cannot hold, in pages that repeat."""

    def test_alibi_is_right_beyond_2_24(self):
        context, slope = fmha.Context(fmha.load(), ARCH), 0.5
        q, k, v = random_arrays(51, (1, 1, 4, 32), (3, 1, 128, 32), (3, 1, 128, 32))
        for distance in (2**16, 2**24 + 1, 2**26 + 3):
            table = (np.arange(-(-(distance + 99) // 128), dtype=np.int32) % 3)[None]
            options = {"data_type": "fp16", "block_table": table, "seqlens_k": np.int32([distance + 99]), "alibi_slopes": [slope],
                       "mask": "generic", "window": (20 - distance, distance + 20), "scale": 0.25}
            call = families.paged(context, ARCH, q, k, v, lse=True, **options).run()
            exact = reference.paged(q, k, v, **options)
            rows, keys = np.arange(4)[:, None], np.arange(distance - 20, distance + 24)
            seen = abs(keys - rows - distance) <= 20
            pages, slots = table[0][keys // 128], keys % 128
            near = slope * (distance - (keys - rows).astype(np.float64))  # with slope * distance less in every score
            o, lse, _ = softmax_attention(q, k[pages, 0, slots][None, None], v[pages, 0, slots][None, None], scale=0.25, visible=seen, bias=near)
            np.testing.assert_allclose(exact[0], o, atol=1e-6)
            np.testing.assert_allclose(exact[1] + slope * distance, lse, atol=1e-6)
            np.testing.assert_allclose(call.output("o"), o, atol=2e-3)
            np.testing.assert_allclose(call.output("lse"), lse - slope * distance, rtol=1e-6)


class InPlace(unittest.TestCase):
    """What a call writes is the caller's memory, whatever its strides, or is refused."""

    def setUp(self):
        self.context = fmha.Context(fmha.load(), ARCH)
        self.new = random_arrays(23, (2, 2, 3, 64), (2, 2, 3, 64))

    def append(self, k, v):
        return families.append(self.context, ARCH, k, v, *self.new, data_type="fp16", seqlens_k=[5, 37])

    def test_append_changes_views(self):
        shapes = {"packed": lambda: np.zeros((2, 2, 40, 64), np.float16), "transposed": lambda: np.zeros((2, 40, 2, 64), np.float16).swapaxes(1, 2),
                  "every other channel": lambda: np.zeros((2, 2, 40, 128), np.float16)[..., ::2],
                  "reversed": lambda: np.zeros((2, 2, 40, 64), np.float16)[:, :, ::-1]}
        for name, cache in shapes.items():
            k, v = cache(), cache()
            call = self.append(DlTensor(k) if name == "transposed" else k, v).run()
            for array, new, output in ((k, self.new[0], "k"), (v, self.new[1], "v")):
                for b, first in enumerate((5, 37)):
                    np.testing.assert_array_equal(array[b, :, first : first + 3], new[b], name)
                self.assertEqual(np.count_nonzero(array), np.count_nonzero(new), name)
                np.testing.assert_array_equal(call.output(output), array)

    def test_what_cannot_be_written_is_refused(self):
        cache = np.zeros((2, 2, 40, 64), np.float16)
        closed = cache.copy()
        closed.setflags(write=False)
        shared = np.lib.stride_tricks.as_strided(cache, cache.shape, (0, *cache.strides[1:]))
        for k, words in ((closed, "k is read-only"), (shared, r"k has shape .* a broadcast axis")):
            with self.assertRaisesRegex(ValueError, words):
                self.append(k, cache)
        q = cache[:, :, :8]
        for out, lse, words in ((closed[:, :, :8], False, "out is read-only"), (shared[:, :, :8], False, "out has shape .* a broadcast axis"),
                                (None, np.zeros((2, 2, 9), np.float32), "lse has shape")):
            with self.assertRaisesRegex(ValueError, words):
                fmha.attention(q, q, q, context=self.context, out=out, lse=lse)
        statistics = np.zeros((2, 2, 8), np.float32)
        statistics.setflags(write=False)
        with self.assertRaisesRegex(ValueError, "lse is read-only"):
            fmha.attention(q, q, q, context=self.context, lse=statistics)
        self.assertTrue(fmha.attention(q[:, :, :0], q, q, context=self.context, out=q[:, :, :0]).o.size == 0)

    def test_an_output_that_lies_in_an_input_is_refused(self):
        memory = random_arrays(24, (2, 2, 4, 300, 64))[0]
        q, k, v, free = (memory[:, :, n] for n in range(4))
        expected = fmha.attention(q, k, v, context=self.context).o
        for out in (q, k, v, memory.reshape(2, 2, 1200, 64)[:, :, 200:500]):
            with self.assertRaisesRegex(ValueError, "out shares memory with an input"):
                fmha.attention(q, k, v, context=self.context, out=out)
        # Between the inputs, in the memory of none.
        result = fmha.attention(q, k, v, context=self.context, out=free)
        np.testing.assert_array_equal(free, expected)
        self.assertEqual(result.o.tobytes(), expected.tobytes())

    def test_arrays_of_a_device_say_whether_they_may_be_written(self):
        told = CudaArray(np.zeros(4, np.float32))
        self.assertFalse(view_of(told).read_only)
        told.__cuda_array_interface__["data"] = (64, True)
        self.assertTrue(view_of(told).read_only)


class Layer(Client):
    def test_vectors_hold_elements_as_they_are_stored(self):
        arrays = random_arrays(22, (2, 4, 20, 128), (2, 2, 40, 128), (2, 2, 40, 128), dtype=np.float32)
        for data_type, qscale, limit in (("fp16", "no", 2e-3), ("bf16", "no", 8e-3), ("fp8bf16", "pertensor", 0.05)):
            factors = dict.fromkeys(("q_descale", "k_descale", "v_descale"), 1.0) if qscale != "no" else {}
            for layout in ("linear", "vectorized"):
                runner = self.jit(family="batch_prefill", mode="group", data_type=data_type, qscale=qscale, paged_kv=True, page_size=16,
                                  kv_memory_layout=layout)
                told = runner.run(*arrays, problem_of(2, 4, 20, nhead_k=2, seqlen_k=40), **factors)
                self.right(told, softmax_attention(*arrays)[0], limit)

    def test_split_keys_of_8_bits_are_scaled(self):
        arrays = random_arrays(26, (2, 4, 20, 128), (2, 2, 90, 128), (2, 2, 90, 128), dtype=np.float32)
        factors = {"q_descale": 0.5, "k_descale": 0.75, "v_descale": 1.5}
        expected = 1.5 * softmax_attention(*arrays, scale=0.375 * 128**-0.5)[0]
        context = fmha.Context(fmha.load(), "gfx950")
        split = families.splitkv(context, "gfx950", *arrays, data_type="fp8bf16", num_splits=3, qscale="pertensor", **factors).run()
        np.testing.assert_allclose(split.output("o"), expected, atol=0.06)
        runner = self.jit(family="fwd_splitkv", data_type="fp8bf16", qscale="pertensor", lse=True)
        self.right(runner.run(*arrays, problem_of(2, 4, 20, nhead_k=2, seqlen_k=90), num_splits=3, **factors), expected, 0.06)


if __name__ == "__main__":
    unittest.main()
