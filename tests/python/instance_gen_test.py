"""Sweep configurations as the tile engine's scripts ask for them."""

import contextlib
import io
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from fmha import find, instance_gen
from fmha.instance_gen import FmhaTileConfig, apply_filter, expand_sweep, validate_tile
from fmha_utils import setup_fmha_dispatcher

SWEEPS = Path(__file__).resolve().parents[2] / "cases" / "sweeps"
ARCHS = Path(__file__).resolve().parents[2] / "kernels" / "arch"


class Expansion(unittest.TestCase):
    def test_names_are_those_of_the_command(self):
        for name, where in (("fwd_ci", "True"), ("appendkv", "True"), ("bwd", "c.hdim_q == 64 and c.data_type == 'fp16'"),
                            ("pagedkv", "c.hdim_q == 32 and c.tile_m0 == 64 and c.data_type == 'bf16' and not c.sink"),
                            ("splitkv", "c.hdim_q == 32 and c.tile_m0 == 64 and c.data_type == 'bf16' and c.mask == 'no'")):
            records = list(instance_gen._records(["--rules", "sweep", "--arch", "gfx950", "--config", str(SWEEPS / f"{name}.json"),
                                                  "--where", where]))
            self.assertGreater(len(records), 10, name)
            self.assertEqual([instance_gen.config_of(record).name for record in records], [record["name"] for record in records])

    def test_equal_names_are_listed_once(self):
        said = subprocess.run([find.command(), "enumerate", "--rules", "sweep", "--arch", "gfx950", "--config", SWEEPS / "fwd_ci.json", "--names"],
                              capture_output=True, text=True, check=True).stdout.split()
        names = [config.name for config in expand_sweep(SWEEPS / "fwd_ci.json", "gfx950")]
        self.assertEqual(names, list(dict.fromkeys(said)))

    def test_head_sizes_are_kept(self):
        configs = expand_sweep(SWEEPS / "bwd.json", "gfx950", restrict_hdims=[64])
        self.assertEqual({config.hdim_q for config in configs}, {64})
        self.assertEqual({len(config.tile) for config in configs if config.family == "bwd_dq_dk_dv"}, {9})
        self.assertEqual(expand_sweep(SWEEPS / "bwd.json", "gfx950", restrict_hdims=[]), [])

    def test_expanded_kernels_can_be_set_up(self):
        for config in expand_sweep(SWEEPS / "fwd_ci.json", "gfx950", restrict_hdims=[[128, 128]])[:3]:
            config.skip_min_seqlen_q = False  # house kernels of batch mode lack it
            self.assertEqual(setup_fmha_dispatcher(config).error, "")

    def test_architectures_of_a_folder(self):
        # One that the command does not have, with the kernels of gfx942.
        with tempfile.TemporaryDirectory() as folder:
            tables = (ARCHS / "gfx942.json").read_text().replace('"gfx942"', '"gfx94f"')
            Path(folder, "gfx94f.json").write_text(tables)
            shutil.copytree(ARCHS / "tables", Path(folder, "tables"))
            names = [config.name for config in expand_sweep(SWEEPS / "fwd_ci.json", "gfx94f", restrict_hdims=[64], arch_dir=folder)]
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertEqual(instance_gen.main([str(SWEEPS / "fwd_ci.json"), "--arch", "gfx94f", "--arch-dir", folder]), 0)
        self.assertEqual(names, [config.name for config in expand_sweep(SWEEPS / "fwd_ci.json", "gfx942", restrict_hdims=[64])])
        self.assertGreater(len(names), 5)
        self.assertIn(" -> ", said.getvalue())

    def test_what_does_not_do_is_a_sentence(self):
        with self.assertRaisesRegex(ValueError, "gfx000"):
            expand_sweep(SWEEPS / "fwd_ci.json", "gfx000")
        with self.assertRaisesRegex(ValueError, "nonexistent"):
            expand_sweep("/nonexistent.json", "gfx950")
        with self.assertRaisesRegex(ValueError, "needs a configuration"):
            expand_sweep(None, "gfx950")
        with self.assertRaisesRegex(ValueError, "mode 'some'"):
            expand_sweep(None, "gfx950", mode="some")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "odd.json")
            file.write_text('{"variant": "sideways", "trait_config": {}}')
            with self.assertRaisesRegex(ValueError, "sideways"):
                expand_sweep(file, "gfx950")


class Filters(unittest.TestCase):
    def test_both_must_hold(self):
        configs = expand_sweep(SWEEPS / "fwd_ci.json", "gfx950")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "filter.py")
            file.write_text("def filter_config(c):\n    return c.hdim_q == 128\n")
            kept = apply_filter(configs, "c.tile_m0 >= 64", file)
            self.assertTrue(0 < len(kept) < len(configs))
            self.assertTrue(all(config.hdim_q == 128 and config.tile_m0 >= 64 for config in kept))
            file.write_text("x = 1\n")
            with self.assertRaisesRegex(ValueError, "filter file .*filter.py: it defines no function filter_config"):
                apply_filter(configs, filter_file=file)
            for text, words in (("def filter_config(c):\n    return c.tile[9]\n", "tuple index out of range"), ("def (", "invalid syntax|expected"),
                                ("raise KeyError\n", "KeyError"), ("def filter_config(c):\n    assert False\n", "AssertionError")):
                file.write_text(text)
                with self.assertRaisesRegex(ValueError, f"filter file .*filter.py: .*({words})"):
                    apply_filter(configs, filter_file=file)
        for expression in ("c.hdmi == 1", "c.hdim_q ==", "d.hdim_q == 1", "c.tile[9] == 1", "c.hdim_q / 0 == 1"):
            with self.assertRaisesRegex(ValueError, "filter "):
                apply_filter(configs, expression)

    def test_the_command_line(self):
        def said(*arguments):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = instance_gen.main([str(SWEEPS / "fwd_ci.json"), *arguments])
            return code, out.getvalue(), err.getvalue()

        count = len(expand_sweep(SWEEPS / "fwd_ci.json", "gfx950"))
        self.assertEqual(said()[1], f"Expanded {SWEEPS / 'fwd_ci.json'} -> {count} configs\n")
        code, out, _ = said("--filter", "c.hdim_q == 128", "--list")
        kept = len(out.splitlines()) - 1
        self.assertEqual((code, out.splitlines()[0].split("configs")[1]), (0, f" (filtered {count - kept}, kept {kept})"))
        self.assertTrue(out.splitlines()[1].startswith("  [0] fmha_fwd_fp16_batch_h128_"))
        self.assertEqual(len(said("--list", "--count-only")[1].splitlines()), 1)
        code, _, err = said("--arch", "gfx000")
        self.assertEqual(code, 2)
        self.assertIn("gfx000", err)
        self.assertEqual(said("--filter", "c.hdim_q / 0")[::2], (2, "instance_gen: filter 'c.hdim_q / 0': division by zero\n"))
        self.assertEqual(said("--filter-file", "/nonexistent.py")[0], 2)


class Tiles(unittest.TestCase):
    def test_products(self):
        good = FmhaTileConfig(128, 128, 32, 128, 32, 128, 4, 32, 32, 16, 32, 32, 16)
        self.assertTrue(validate_tile(good, "gfx950", "fp16", 128, 128))
        self.assertEqual(len({good, FmhaTileConfig(128, 128, 32, 128, 32, 128, 4, 32, 32, 16, 32, 32, 16)}), 1)
        self.assertFalse(validate_tile(FmhaTileConfig(64, 128, 32, 128, 32, 128, 4, 32, 32, 16, 32, 32, 16), "gfx950", "fp16", 128, 128))
        self.assertFalse(validate_tile(good, "gfx950", "fp16", 256, 128))


if __name__ == "__main__":
    unittest.main()
