"""Arrays of other libraries are taken as they lie, and what cannot be taken is refused."""

import gc
import unittest

import numpy as np

import fmha
from common import CudaArray, DlTensor, random_arrays, softmax_attention
from fmha import reference
from fmha.calls import Call
from fmha.tensors import numpy_of, view_of


class Views(unittest.TestCase):
    def test_numpy_keeps_its_strides(self):
        array = np.zeros((2, 3, 4, 8), np.float16).transpose(0, 2, 1, 3)
        view = view_of(array)
        self.assertEqual((view.address, view.shape, view.strides), (array.ctypes.data, (2, 4, 3, 8), (96, 8, 32, 1)))
        self.assertIs(numpy_of(view), array)

    def test_dlpack_shares_memory_and_gives_it_back(self):
        array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, ::2]
        tensor = DlTensor(array)
        shared = numpy_of(view_of(tensor))
        self.assertEqual(shared.tolist(), array.tolist())
        shared[1, 1, 3] = 99
        self.assertEqual(array[1, 1, 3], 99)
        gc.collect()
        self.assertEqual(tensor.freed, 0, "the memory was given back while an array on it lived")
        del shared
        gc.collect()
        self.assertEqual(tensor.freed, 1)

    def test_dlpack_tells_where_the_first_element_is(self):
        array = np.arange(6, dtype=np.float32)
        self.assertEqual(numpy_of(view_of(DlTensor(array, byte_offset=64))).tolist(), array.tolist())

    def test_dlpack_tells_bfloat16_from_bits(self):
        bits = np.full(4, 0x3F80, np.uint16)
        self.assertTrue(view_of(DlTensor(bits, code=4)).is_bf16)
        self.assertFalse(view_of(DlTensor(bits)).is_bf16)

    def test_bfloat16_of_a_device_is_not_taken_for_float16(self):
        class Tensor(DlTensor):
            """Speaks both protocols, as PyTorch's tensors do, and one of them imprecisely."""
            __cuda_array_interface__ = {"version": 2, "shape": (4,), "typestr": "<f2", "data": (64, False), "strides": None}

        bits = np.full(4, 0x3F80, np.uint16)
        self.assertTrue(view_of(Tensor(bits, code=4, device_type=2)).is_bf16)

        class Floats:
            __cuda_array_interface__ = {"version": 3, "shape": (4,), "typestr": "<V2", "data": (64, False), "strides": None}

        view = view_of(Floats())
        self.assertEqual((view.is_bf16, view.dtype, view.on_device), (True, np.dtype("<u2"), True))

    def test_a_mask_is_not_left_out(self):
        array = np.ma.masked_array(np.ones((2, 3)), mask=False)
        self.assertEqual(view_of(array).shape, (2, 3))
        array[0, 1] = np.ma.masked
        with self.assertRaisesRegex(ValueError, "the array has masked elements"):
            view_of(array)

    def test_strides_of_an_array_without_elements(self):
        self.assertEqual(view_of(np.empty((0, 2, 64), np.float16)).strides, (128, 64, 1))
        self.assertEqual(view_of(np.empty((2, 0), np.float32)).strides, (1, 1))

    def test_tables_of_a_device_are_packed(self):
        call = Call(reference._NoKernels(), fmha.FWD, "fp16", "gfx950")
        table = np.arange(12, dtype=np.int32).reshape(3, 4)
        self.assertEqual(call.array(CudaArray(table), np.int32, "table", None, None), table.ctypes.data)
        self.assertEqual(call.array(CudaArray(table[:1, :3]), np.int32, "table", None, None), table.ctypes.data)
        for gaps in (table[:, :3], table[0, ::2]):
            with self.assertRaisesRegex(ValueError, "it must be packed"):
                call.array(CudaArray(gaps), np.int32, "table", *(None for _ in gaps.shape))

    def test_what_cannot_be_taken_is_named(self):
        for array, error, words in ((object(), TypeError, "object is no array"),
                                    (DlTensor(np.zeros(2, np.float32), device_type=7), ValueError, "device type 7"),
                                    (DlTensor(np.zeros(2, np.float32), lanes=2), ValueError, "2 lanes"),
                                    (DlTensor(np.zeros(2, np.float32), code=5), ValueError, "type code 5")):
            with self.assertRaisesRegex(error, words):
                view_of(array)
        with self.assertRaisesRegex(ValueError, "lies on a device"):
            numpy_of(view_of(CudaArray(np.zeros(2, np.float32))))
        misaligned = np.zeros(9, np.uint8)[1:].view(np.float32)[::1]
        odd = np.lib.stride_tricks.as_strided(misaligned, (2,), (6,))
        with self.assertRaisesRegex(ValueError, "no multiples"):
            view_of(odd)


class Calls(unittest.TestCase):
    def setUp(self):
        self.q, self.k, self.v = random_arrays(1, (2, 4, 33, 64), (2, 2, 40, 64), (2, 2, 40, 64))
        self.expected = softmax_attention(self.q, self.k, self.v)[0]

    def close(self, o):
        np.testing.assert_allclose(np.asarray(o, np.float64), self.expected, atol=2e-3)

    def test_tensors_of_other_libraries(self):
        self.close(fmha.attention(*(DlTensor(array) for array in (self.q, self.k, self.v))).o)

    def test_views_that_are_transposed_or_reversed(self):
        apart = [np.ascontiguousarray(array.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for array in (self.q, self.k, self.v)]
        self.close(fmha.attention(*apart).o)
        reversed_heads = self.q[:, ::-1]
        got = fmha.attention(reversed_heads, self.k[:, ::-1], self.v[:, ::-1]).o
        self.close(got[:, ::-1])
        sparse = np.zeros((2, 4, 33, 128), np.float16)
        sparse[..., ::2] = self.q
        self.close(fmha.attention(sparse[..., ::2], self.k, self.v).o)

    def test_an_array_from_within_bytes_is_copied(self):
        def beside(array):
            return np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)

        self.close(fmha.attention(*(beside(array) for array in (self.q, self.k, self.v))).o)
        with self.assertRaisesRegex(fmha.Error, "o.data is .*; elements of 2 bytes lie at multiples of 2"):
            fmha.attention(self.q, self.k, self.v, out=np.zeros(2 * self.q.size + 1, np.uint8)[1:].view(np.float16).reshape(self.q.shape))

    def test_the_output_goes_where_the_caller_says(self):
        out = np.full((2, 33, 4, 64), 9, np.float16).transpose(0, 2, 1, 3)
        lse = np.zeros((2, 4, 33), np.float32)
        result = fmha.attention(self.q, self.k, self.v, out=out, lse=lse)
        self.close(out)
        self.assertTrue(np.shares_memory(result.o, out))
        np.testing.assert_allclose(lse, softmax_attention(self.q, self.k, self.v)[1], atol=1e-4)
        shared = DlTensor(np.zeros((2, 4, 33, 64), np.float16))
        fmha.attention(self.q, self.k, self.v, out=shared)
        self.close(shared.array)

    def test_an_output_that_does_not_fit_is_refused(self):
        for out, words in ((np.zeros((2, 4, 33, 32), np.float16), "out has shape"), (np.zeros((2, 4, 33, 64), np.float32), "out holds float32"),
                           (CudaArray(np.zeros((2, 4, 33, 64), np.float16)), "not memory of the host")):
            with self.assertRaisesRegex(ValueError, words):
                fmha.attention(self.q, self.k, self.v, out=out)

    def test_shapes_that_contradict_each_other_are_refused(self):
        for k, v, words in ((self.k[..., :32], self.v, "channels of q and k differ: 64 and 32"), (self.k, self.v[:, :1], "heads of k and v"),
                            (self.k, self.v[:, :, :9], "keys of k and v"), (self.k[:1], self.v, "entries of q and k"),
                            (self.k[0], self.v, "k has shape")):
            with self.assertRaisesRegex(ValueError, words):
                fmha.attention(self.q, k, v)
        with self.assertRaisesRegex(ValueError, "int32 elements do not tell"):
            fmha.attention(self.q.astype(np.int32), self.k, self.v)
        with self.assertRaisesRegex(fmha.Error, "H-1|multiple of nhead_k") as caught:
            fmha.attention(self.q[:, :3], self.k, self.v)
        self.assertEqual(caught.exception.rule, "H-1")

    def test_device_arrays_need_a_device(self):
        with self.assertRaisesRegex(ValueError, "device"):
            fmha.attention(CudaArray(self.q), CudaArray(self.k), CudaArray(self.v))


if __name__ == "__main__":
    unittest.main()
