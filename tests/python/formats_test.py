"""Number formats that NumPy lacks, against values written down by hand."""

import unittest

import numpy as np

from fmha import formats
from fmha.formats import BF16, E2M1, E4M3, E4M3_FNUZ, E5M2, E5M2_FNUZ, E8M0, FP16, FP32

EIGHT_BITS = (E4M3, E5M2, E4M3_FNUZ, E5M2_FNUZ)


class Codes(unittest.TestCase):
    def test_codes_that_the_formats_define(self):
        for element, code, value in ((E4M3, 0x7E, 448.0), (E4M3, 0x01, 2.0**-9), (E4M3, 0x38, 1.0), (E5M2, 0x7B, 57344.0),
                                     (E5M2, 0x01, 2.0**-16), (E4M3_FNUZ, 0x7F, 240.0), (E4M3_FNUZ, 0x40, 1.0),
                                     (E5M2_FNUZ, 0x7F, 57344.0), (E2M1, 7, 6.0), (E2M1, 1, 0.5), (E8M0, 127, 1.0), (E8M0, 0, 2.0**-127)):
            self.assertEqual(formats.table_of(element)[code], value, (element.name, code))
        for element, code in ((E4M3, 0x7F), (E4M3_FNUZ, 0x80), (E5M2_FNUZ, 0x80), (E5M2, 0x7D), (E8M0, 255)):
            self.assertTrue(np.isnan(formats.table_of(element)[code]), (element.name, code))
        self.assertEqual(formats.table_of(E5M2)[0xFC], -np.inf)

    def test_every_code_survives_both_ways(self):
        for element in EIGHT_BITS:
            values = formats.table_of(element)
            codes = np.flatnonzero(np.isfinite(values)).astype(np.uint8)
            self.assertEqual(formats.encode(values[codes], element).tolist(), codes.tolist(), element.name)

    def test_ties_go_to_the_even_code(self):
        for element in EIGHT_BITS:
            values = formats.table_of(element).astype(np.float64)
            for code in (8, 9, 33, 34):
                middle = (values[code] + values[code + 1]) / 2
                self.assertEqual(formats.encode(np.array([middle]), element)[0], code + code % 2, (element.name, code))
                above, below = np.nextafter(middle, np.inf), np.nextafter(middle, 0)
                self.assertEqual(formats.encode(np.array([above, below]), element).tolist(), [code + 1, code])

    def test_what_is_too_large_becomes_the_largest(self):
        for element, code in ((E4M3, 0x7E), (E5M2, 0x7B), (E4M3_FNUZ, 0x7F), (E5M2_FNUZ, 0x7F)):
            self.assertEqual(formats.encode(np.array([1e9, -1e9, np.inf]), element).tolist(), [code, code | 0x80, code])

    def test_the_fnuz_formats_have_no_negative_zero(self):
        self.assertEqual(formats.encode(np.array([-0.0, -1e-9]), E4M3_FNUZ).tolist(), [0, 0])
        self.assertEqual(formats.encode(np.array([-0.0]), E4M3).tolist(), [0x80])

    def test_four_bits_lie_in_pairs(self):
        packed = formats.encode(np.array([[1.0, -6.0, 0.5, 0.0]]), E2M1)
        self.assertEqual(packed.tolist(), [[0xF2, 0x01]])
        self.assertEqual(formats.decode(packed, E2M1).tolist(), [[1.0, -6.0, 0.5, 0.0]])
        with self.assertRaisesRegex(ValueError, "even"):
            formats.encode(np.ones((2, 3)), E2M1)


class Bfloat16(unittest.TestCase):
    def test_rounding(self):
        for value, code in ((1.0, 0x3F80), (1 + 2.0**-8, 0x3F80), (1 + 3 * 2.0**-8, 0x3F82), (1 + 2.0**-8 + 2.0**-20, 0x3F81),
                            (3.4e38, 0x7F80), (-0.0, 0x8000), (np.inf, 0x7F80)):
            self.assertEqual(formats.encode(np.array([value], np.float32), BF16)[0], code, value)
        self.assertTrue(np.isnan(formats.decode(formats.encode(np.array([np.nan], np.float32), BF16), BF16)[0]))

    def test_doubles_round_once(self):
        # Just above the middle between two values, by less than fp32 can tell.
        value = 1 + 2.0**-8 + 2.0**-40
        self.assertEqual(formats.encode(np.array([value]), BF16)[0], 0x3F81)
        self.assertEqual(formats.encode(np.array([-value]), BF16)[0], 0xBF81)

    def test_bits_pass_as_they_are(self):
        bits = np.array([1, 2], np.uint16)
        self.assertIs(formats.encode(bits, BF16), bits)
        half = np.zeros(2, np.float16)
        self.assertIs(formats.encode(half, FP16), half)
        with self.assertRaisesRegex(ValueError, "int64 values are neither numbers nor bits of fp32"):
            formats.encode(np.array([1]), FP32)


class DataTypes(unittest.TestCase):
    def test_gfx942_has_its_own_8_bit_floats(self):
        self.assertIs(formats.data_type("fp8bf16", "gfx942").inputs, E4M3_FNUZ)
        self.assertIs(formats.data_type("fp8bf16", "gfx950").inputs, E4M3)
        self.assertIs(formats.data_type("bf8", "gfx942").output, E5M2_FNUZ)
        with self.assertRaisesRegex(ValueError, "fp8fp16.*allowed: fp32"):
            formats.data_type("fp8fp16", "gfx950")


if __name__ == "__main__":
    unittest.main()
