"""The nine C functions of the dispatcher's library, called as its Python layer calls them: arguments by position, on host memory."""

import ctypes
import os
import subprocess
import sys
import unittest
from ctypes import c_char_p, c_float, c_int, c_void_p

import numpy as np

from common import causal, random_arrays, softmax_attention, softmax_gradients

LIBRARY = os.environ["FMHA_DISPATCHER_LIBRARY"]
SIZES = (2, 4, 2, 33, 50, 64, 64)
(Q,), (K, V) = random_arrays(31, (2, 4, 33, 64)), random_arrays(32, (2, 2, 50, 64), (2, 2, 50, 64))
# What stands behind the pointers and the sizes, in the order of the declarations; f: float, s: text, i: int.
FORMS = {"run_fwd": (4, "f" + "i" * 8 + "s" + "i" * 6), "run_bwd": (9, "fs" + "i" * 8),
         "run_splitkv": (4, "fiiis" + "i" * 10), "run_pagedkv": (4, "fiii" + "s" + "i" * 5),
         "run_appendkv": (3, "iiiis"), "run_batch_prefill": (4, "f" + "i" * 6 + "s" + "i" * 5)}
KINDS = {"f": c_float, "s": c_char_p, "i": c_int}


def bind(path):
    lib = ctypes.CDLL(path)
    for name, (pointers, behind) in FORMS.items():
        function = getattr(lib, f"fmha_dispatcher_{name}")
        function.restype = c_int
        function.argtypes = [c_void_p] * pointers + [c_int] * 7 + [KINDS[kind] for kind in behind] + [ctypes.POINTER(c_float)]
    lib.fmha_dispatcher_initialize.argtypes = [c_char_p]
    return lib


class Functions(unittest.TestCase):
    def setUp(self):
        self.lib = bind(LIBRARY)
        self.assertEqual(self.lib.fmha_dispatcher_initialize(b"gfx950"), 0)
        self.addCleanup(self.lib.fmha_dispatcher_cleanup)

    def call(self, name, arrays, *behind, sizes=SIZES, status=0):
        time = c_float(-1.0)
        got = getattr(self.lib, f"fmha_dispatcher_{name}")(*(array.ctypes.data if array is not None else None for array in arrays), *sizes,
                                                          *behind, ctypes.byref(time))
        self.assertEqual(got, status)
        if status == 0:
            self.assertGreater(time.value, 0)

    def attends(self, name, arrays, expected, *behind, sizes=SIZES, dtype=np.float16):
        o = np.full(expected.shape, 7, dtype)
        self.call(name, (*arrays, o), *behind, sizes=sizes)
        np.testing.assert_allclose(o.astype(np.float64), expected, atol=3e-3)

    @staticmethod
    def forward(scale=0.0, mask=0, bias=0, lse=0, dropout=0, traits=(0, 0), v_rowmajor=1, perm=1, dtype=b"fp16", group=0, left=-1, right=-1,
                logits=0, sink=0, skip=0):
        return scale, mask, bias, lse, dropout, *traits, v_rowmajor, perm, dtype, group, left, right, logits, sink, skip

    def test_life(self):
        self.assertGreater(self.lib.fmha_dispatcher_kernel_count(), 1000)
        for same in (b"gfx950", None):
            self.assertEqual(self.lib.fmha_dispatcher_initialize(same), 0)
        self.assertEqual(self.lib.fmha_dispatcher_initialize(b"gfx942"), -1, "8-bit values mean others there")
        self.assertGreater(self.lib.fmha_dispatcher_kernel_count(), 1000)  # what is open stays
        self.lib.fmha_dispatcher_cleanup()
        self.lib.fmha_dispatcher_cleanup()
        self.assertEqual(self.lib.fmha_dispatcher_kernel_count(), 0)
        self.assertEqual(self.lib.fmha_dispatcher_initialize(b"gfx000"), -1)
        for name, (pointers, behind) in FORMS.items():
            arguments = [{"f": 0.0, "s": b"fp16", "i": 0}[kind] for kind in behind]
            self.call(name, [Q] * pointers, *arguments, status=-1)

    def test_forward(self):
        plain = softmax_attention(Q, K, V)[0]
        self.attends("run_fwd", (Q, K, V), plain, *self.forward())
        self.attends("run_fwd", (Q, K, V), plain, *self.forward(lse=1, traits=(64, 64), scale=0.125))
        self.attends("run_fwd", (Q, K, V), softmax_attention(Q, K, V, scale=0.3)[0], *self.forward(scale=0.3))
        self.attends("run_fwd", (Q, K, V), softmax_attention(Q, K, V, visible=causal(33, 50))[0], *self.forward(mask=1))
        self.attends("run_fwd", (Q, K, V), softmax_attention(Q, K, V, visible=causal(33, 50, True))[0], *self.forward(mask=2, group=1, lse=1))
        turned = [np.ascontiguousarray(array.transpose(0, 2, 1, 3)) for array in (Q, K, V)]
        for group in (0, 1):
            self.attends("run_fwd", turned, plain.transpose(0, 2, 1, 3), *self.forward(perm=0, group=group))
        self.attends("run_fwd", (Q, K, np.ascontiguousarray(V.swapaxes(2, 3))), plain, *self.forward(v_rowmajor=0))
        single = [array.astype(np.float32) for array in (Q, K, V)]
        self.attends("run_fwd", single, plain, *self.forward(dtype=b"fp32"), dtype=np.float32)

    def test_backward(self):
        (d_o,) = random_arrays(3, Q.shape)
        for mask, visible in ((0, None), (1, causal(33, 50))):
            o, lse, _ = softmax_attention(Q, K, V, visible=visible)
            for group in (0, 1):
                out = [np.full(array.shape, 7, np.float16) for array in (Q, K, V)]
                self.call("run_bwd", (Q, K, V, o.astype(np.float16), lse.astype(np.float32), d_o, *out), 0.0, b"fp16", mask, 0, 0, 0, 1, group, 0,
                          128)
                for got, expected in zip(out, softmax_gradients(Q, K, V, d_o, visible=visible)):
                    np.testing.assert_allclose(got, expected, atol=2e-2)

    def test_families_over_a_cache(self):
        for mask, visible in ((0, None), (2, causal(33, 50, True))):
            expected = softmax_attention(Q, K, V, visible=visible)[0]
            for group, paged in ((0, 0), (1, 0), (0, 1)):
                self.attends("run_splitkv", (Q, K, V), expected, 0.0, mask, 3, 1, b"fp16", 1, group, 1, 0, 0, 0, paged, 64, -1, -1)
            self.attends("run_pagedkv", (Q, K, V), expected, 0.0, mask, 0, 1, b"fp16", 1, 0, 0, 0, 0)
            for layout, page_size in ((0, 16), (1, 16), (1, 1)):
                for lookup in (0, 1):
                    self.attends("run_batch_prefill", (Q, K, V), expected, 0.0, mask, 0, page_size, layout, lookup, 1, b"fp16", 0, 0, 0, 0, 0)
        self.call("run_appendkv", (None, K, V), 1, 0, 0, 128, b"fp16")

    def test_what_no_argument_brings(self):
        o = np.empty_like(Q)
        for options in ({"bias": 1}, {"dropout": 1}, {"logits": 1}, {"sink": 1}, {"skip": 1}, {"skip": 1, "group": 1}, {"dtype": b"fp12"}, {"traits": (128, 0)}):
            self.call("run_fwd", (Q, K, V, o), *self.forward(**options), status=-2)
        self.call("run_fwd", (None, K, V, o), *self.forward(), status=-2)
        self.call("run_fwd", (None, K, V, o), *self.forward(group=1), status=-2)
        self.call("run_fwd", (Q, K, V, o), *self.forward(), sizes=(2, 4, 3, 33, 50, 64, 64), status=-2)
        self.call("run_fwd", (Q, K, V, o), *self.forward(), sizes=(-2, 4, 2, 33, 50, 64, 64), status=-2)
        self.call("run_bwd", (Q, K, V, Q, Q, Q, o, o, o), 0.0, b"fp16", 0, 0, 0, 1, 0, 0, 0, 128, status=-2)
        self.call("run_appendkv", (None, K, V), 1, 1, 0, 128, b"fp16", status=-2)
        self.call("run_batch_prefill", (Q, K, V, o), 0.0, 0, 0, 1, 0, 0, 1, b"fp16", 0, 0, 0, 0, 0, status=-2)
        for has_skip, status in ((0, 0), (1, -2)):
            self.call("run_pagedkv", (Q, K, V, o), 0.0, 0, 0, 1, b"fp16", 0, 0, 0, has_skip, 0, status=status)
            self.call("run_batch_prefill", (Q, K, V, o), 0.0, 0, 0, 16, 1, 0, 1, b"fp16", 0, 0, 0, 0, has_skip, status=status)

    def test_the_sentence_is_on_stderr(self):
        script = ("import ctypes,sys; lib=ctypes.CDLL(sys.argv[1]); lib.fmha_dispatcher_initialize(b'gfx950'); "
                  "lib.fmha_dispatcher_run_appendkv(None,None,None,1,1,1,1,1,64,64,1,1,0,0,b'fp16',None)")
        ran = subprocess.run([sys.executable, "-c", script, LIBRARY], capture_output=True, text=True, check=True)
        self.assertEqual(ran.stderr, "fmha: rope is set, and this call has no argument for rotary tables\n")


if __name__ == "__main__":
    unittest.main()
