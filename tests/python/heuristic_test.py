"""Heuristics of a context: what they may do with the context that asks them, and what their failures do."""

import contextlib
import io
import threading
import unittest

import fmha
from common import random_arrays
from fmha import families

Q, K, V = random_arrays(7, (2, 4, 70, 64), (2, 2, 90, 64), (2, 2, 90, 64))
WIDE = "fwd_gfx950_fp16_*_h256x256_*"


class Heuristic(unittest.TestCase):
    def setUp(self):
        self.context = fmha.Context(fmha.load(), "gfx950")
        self.addCleanup(self.context.close)
        self.own = self.kernel()

    def kernel(self):
        return fmha.attention(Q, K, V, context=self.context).kernel

    def plan(self, address):
        """Of the arguments that a heuristic gets."""
        return self.context.plan(self.context.lib.structure("fmha_fwd_args").from_address(address)).kernel.decode()

    def test_one_that_fails_is_printed(self):
        """And the library chooses; a process that read the missing answer crashed."""
        for heuristic, words in ((lambda _: 1 / 0, "ZeroDivisionError"), (lambda _: 5, "TypeError"), (lambda _: ["\udc80"], "UnicodeEncodeError")):
            self.context.set_heuristic(heuristic)
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(self.kernel(), self.own)
            self.assertIn(words, said.getvalue())

    def test_it_may_ask_what_would_run_without_it(self):
        """A context that asked the heuristic again ended the process."""
        told = []

        def prefer(address):
            told.append(self.plan(address))
            return [WIDE]

        self.context.set_heuristic(prefer)
        self.assertIn("_h256x256_", self.kernel())
        self.assertEqual(told, [self.own])

    def test_what_fails_within_it_is_not_told_of_its_call(self):
        def prefer(address):
            with self.assertRaisesRegex(fmha.Error, "none of the [0-9]+ kernels of this context satisfies c.hdim_q == 1"):
                self.context.keep("c.hdim_q == 1")
            return [WIDE]

        self.context.set_heuristic(prefer)
        self.assertIn("_h256x256_", self.kernel())
        self.assertEqual(self.context.lib.functions.fmha_last_error(self.context.handle), b"")

    def test_it_cannot_close_its_context(self):
        refused = []

        def prefer(_):
            with self.assertRaises(fmha.Error) as caught:
                self.context.close()
            refused.append(str(caught.exception))
            return [WIDE]

        self.context.set_heuristic(prefer)
        self.assertIn("_h256x256_", self.kernel())
        self.assertEqual(refused, ["BAD_ARGUMENT: a call of the context is in progress; close it when that has returned"])
        self.context.close()
        self.assertEqual(self.context.kernel_count(), 0)

    def test_another_thread_closes_it_after_the_call(self):
        failed = []

        def close():
            try:
                self.context.close()
            except fmha.Error as error:
                failed.append(error)

        closer = threading.Thread(target=close)

        def prefer(_):
            closer.start()
            closer.join(0.05)  # time to get as far as it can
            return [WIDE]

        call = families.forward(self.context, "gfx950", Q, K, V, data_type="fp16")
        self.context.set_heuristic(prefer)
        self.assertIn(b"_h256x256_", self.context.plan(call.args).kernel)
        closer.join()
        self.assertEqual(failed, [])
        self.assertEqual(self.context.kernel_count(), 0)

    def test_threads_that_share_a_context_all_get_its_preference(self):
        kernels = []

        def prefer(address):
            self.plan(address)
            return [WIDE]

        self.context.set_heuristic(prefer)
        threads = [threading.Thread(target=lambda: kernels.extend(self.kernel() for _ in range(20))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(kernels), 40)
        self.assertTrue(all("_h256x256_" in kernel for kernel in kernels), set(kernels))

    def test_one_that_takes_itself_away_still_answers(self):
        """Its answer lived in the callback, which went with it."""
        def prefer(_):
            self.context.set_heuristic(None)
            return [WIDE]

        self.context.set_heuristic(prefer)
        self.assertIn("_h256x256_", self.kernel())
        self.assertEqual(self.kernel(), self.own)


if __name__ == "__main__":
    unittest.main()
