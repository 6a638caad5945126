"""Sweep configurations of the tile engine as lists of kernel configurations, under the names that its scripts import.

    python3 -m fmha.instance_gen fwd_ci.json --arch gfx950 --filter "c.hdim_q == 128" --list

The command `fmha` enumerates; everything that `fmha enumerate --rules sweep` knows holds here too."""

from __future__ import annotations

import argparse
import json
import runpy
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fmha import find
from fmha.layer.config import FmhaKernelConfig

_MASKS = {"none": "no", "causal": "top_left", "generic": "generic"}
_BIASES = {"none": "no", "elementwise": "bias", "alibi": "alibi"}
_LAYOUTS = {"row": "r", "column": "c"}
_LOOKUPS = {"vllm_2d": "vllm", "sglang_1d": "sglang", "unset": "sglang"}


@dataclass(frozen=True)
class FmhaTileConfig:
    """Block tile (b), waves along its axes (r) and warp tile (w) of the two products."""
    bm0: int
    bn0: int
    bk0: int
    bn1: int
    bk1: int
    bk0max: int
    rm0: int
    wm0: int
    wn0: int
    wk0: int
    wm1: int
    wn1: int
    wk1: int
    rn0: int = 1
    rk0: int = 1
    rm1: int = 1
    rn1: int = 1
    rk1: int = 1


def validate_tile(tile: FmhaTileConfig, arch: str, dtype: str, hdim_q: int, hdim_v: int, pipeline: str = "qr_async") -> bool:
    """Whether waves times warp tiles divide the block tile (VR-07) and the tile covers the head sizes. What an architecture and a pipeline
    ask beyond that, `fmha enumerate --rules sweep` decides."""
    del arch, dtype, pipeline
    rows = tile.bm0 % (tile.rm0 * tile.wm0) == 0
    first = tile.bn0 % (tile.rn0 * tile.wn0) == 0 and tile.bk0 % (tile.rk0 * tile.wk0) == 0
    second = tile.bn1 % (tile.rn1 * tile.wn1) == 0 and tile.bk1 % (tile.rk1 * tile.wk1) == 0
    return rows and first and second and tile.bk0max >= hdim_q and tile.bn1 >= hdim_v


def config_of(record: dict[str, Any]) -> FmhaKernelConfig:
    """A record of `fmha enumerate --format json` as a configuration."""
    s, a = record["signature"], record["algorithm"]
    config = FmhaKernelConfig(
        family=s["family"], data_type=s["data_type"], mode=s["mode"], vlayout=_LAYOUTS[s["v_layout"]], hdim_q=s["hdim_q"],
        hdim_v=s["hdim_v"], gfx_arch=record["arch"], pipeline=a["pipeline"], block_per_cu=a["block_per_cu"],
        num_wave_groups=a["num_wave_groups"], mask=_MASKS[s["mask"]], bias=_BIASES[s["bias"]], lse=s["has_lse"],
        dropout=s["has_dropout"], qscale="no" if s["qscale"] == "none" else s["qscale"], rope=s["rope"],
        logits=s["has_logits_soft_cap"], paged_kv=s["use_paged_kv"], sink=s["has_sink"], skip_min_seqlen_q=s["skip_min_seqlen_q"],
        page_size=s["page_size"], kv_memory_layout="vectorized" if s["kv_layout"] == "unset" else s["kv_layout"],
        kv_lookup_table=_LOOKUPS[s["kv_lookup"]], deterministic=s["is_deterministic"], dbias=s["has_dbias"],
        tile_tag=a["tile_tag"], use_trload=a["use_trload"])
    for name, value in a["tile"].items():
        setattr(config, f"tile_{name}".replace("tile_b", "tile_bwd"), value)
    for group in ("wave", "warp"):
        for name, value in a[group].items():
            setattr(config, f"{group}_{name}", value)
    for name, value in a["pad"].items():
        setattr(config, f"pad_{name}", int(value))
    if s["family"] == "bwd_dq_dk_dv":
        config.dropout_variant = a["dropout_variant"]
    return config


def _records(arguments: list[str]) -> Iterator[dict[str, Any]]:
    """One record a line, as the command writes them."""
    command = find.command()
    if command is None:
        raise ValueError("the command fmha was not found; put it on PATH or name it in FMHA_COMMAND")
    with subprocess.Popen([command, "enumerate", "--format", "json", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line.rstrip().rstrip(","))
        words = process.stderr.read().strip()
    if process.returncode != 0:
        raise ValueError(words or f"fmha enumerate ended with {process.returncode}")


def expand_sweep(config_path: Any, arch: str, receipt: int = 0, mode: str = "rules",
                 restrict_hdims: Iterable[Any] | None = None, default_variant: str = "fwd", *,
                 arch_dir: Any = None) -> list[FmhaKernelConfig]:
    """The kernels of a sweep configuration, the first of equal names. `restrict_hdims` keeps head sizes, numbers or pairs. In mode
    "exhaustive" tiles are a product without rules, and without a path it is that of `default_variant`. `arch_dir`: a
    folder of architecture files instead of those that the command has. Raises ValueError with the command's
    sentence for an architecture, a variant or a file that does not do."""
    if mode not in ("rules", "exhaustive"):
        raise ValueError(f"mode {mode!r} is not known; allowed: rules, exhaustive")
    if config_path is None and mode != "exhaustive":
        raise ValueError("mode rules needs a configuration; only exhaustive does without one")
    arguments = ["--rules", "sweep", "--arch", arch]
    arguments += ["--arch-dir", str(arch_dir)] if arch_dir is not None else []
    arguments += ["--config", str(config_path)] if config_path is not None else ["--family", default_variant]
    arguments += ["--exhaustive"] if mode == "exhaustive" else []
    arguments += ["--profile", str(receipt)] if receipt else []
    if restrict_hdims is not None:
        sizes = [tuple(size) if isinstance(size, (tuple, list)) else (size, size) for size in restrict_hdims]
        arguments += ["--where", " or ".join(f"c.hdim_q == {q} and c.hdim_v == {v}" for q, v in sizes) or "False"]
    found: dict[str, FmhaKernelConfig] = {}
    for record in _records(arguments):
        config = config_of(record)
        found.setdefault(config.name, config)
    return list(found.values())


def apply_filter(configs: Iterable[FmhaKernelConfig], expr: str = "", filter_file: Any = "") -> list[FmhaKernelConfig]:
    """Those that filter_config(c) of a Python file and a Python expression over `c` both accept. Raises ValueError for a file
    without that function and for what cannot be evaluated."""
    kept = list(configs)
    if filter_file:
        try:
            function = runpy.run_path(str(filter_file)).get("filter_config")
            if not callable(function):
                raise ValueError("it defines no function filter_config(c)")
            kept = [config for config in kept if function(config)]
        except Exception as error:  # whatever the caller's own code raises
            raise ValueError(f"filter file {filter_file}: {str(error) or type(error).__name__}") from error
    if expr:
        try:
            code = compile(expr.strip(), "the filter", "eval")
            kept = [config for config in kept if eval(code, {"c": config})]  # noqa: S307, the caller's own expression
        except Exception as error:
            raise ValueError(f"filter {expr!r}: {error}") from error
    return kept


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m fmha.instance_gen", description="Expand a sweep configuration of the tile engine")
    parser.add_argument("config", help="JSON file")
    parser.add_argument("--arch", default="gfx950")
    parser.add_argument("--arch-dir", help="folder of architecture files instead of those that the command has")
    parser.add_argument("--receipt", type=int, default=0, help="number of a profile")
    parser.add_argument("--filter", default="", help="Python expression over c")
    parser.add_argument("--filter-file", default="", help="Python file that defines filter_config(c)")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--count-only", action="store_true", help="print the numbers alone")
    given = parser.parse_args(arguments)
    try:
        configs = expand_sweep(given.config, given.arch, given.receipt, arch_dir=given.arch_dir)
        kept = apply_filter(configs, given.filter, given.filter_file)
    except (ValueError, OSError) as error:
        print(f"instance_gen: {error}", file=sys.stderr)
        return 2
    left = len(configs) - len(kept)
    print(f"Expanded {given.config} -> {len(configs)} configs" + (f" (filtered {left}, kept {len(kept)})" if left else ""))
    if given.list and not given.count_only:
        for number, config in enumerate(kept):
            print(f"  [{number}] {config.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
