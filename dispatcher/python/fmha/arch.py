"""The architecture of the first GPU, found without a runtime."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

FALLBACK = "gfx950"
_KFD = Path("/sys/class/kfd/kfd/topology/nodes")


def _hidden(variable: str) -> bool:
    """Whether a variable such as HIP_VISIBLE_DEVICES hides every device."""
    value = os.environ.get(variable)
    return value is not None and value.strip() in ("", "-1")


def amd_arch(nodes: Path = _KFD) -> str | None:
    """The architecture of the first AMD GPU that the kernel driver lists."""
    if _hidden("HIP_VISIBLE_DEVICES") or _hidden("ROCR_VISIBLE_DEVICES"):
        return None
    try:
        folders = sorted(nodes.iterdir(), key=lambda folder: int(folder.name))
    except (OSError, ValueError):
        return None
    for folder in folders:
        try:
            match = re.search(r"^gfx_target_version (\d+)$", (folder / "properties").read_text(), re.MULTILINE)
        except (OSError, ValueError):  # ValueError: a file that is no text
            continue
        if match and int(match[1]) > 0:
            version = int(match[1])  # 90402 is gfx942: major, minor and stepping of two digits each
            return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    return None


def nvidia_arch() -> str | None:
    """The architecture of the first NVIDIA GPU that its driver lists."""
    if _hidden("CUDA_VISIBLE_DEVICES") or not Path("/dev/nvidiactl").exists():
        return None
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True,
                              text=True, timeout=5, check=True).stdout
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    match = re.match(r"\s*(\d+)\.(\d+)", said)
    return f"sm_{match[1]}{match[2]}" if match else None


def device_arch() -> str | None:
    """The architecture of the first GPU of this machine, None without one. Never raises."""
    return amd_arch() or nvidia_arch()


def detect_gpu_arch(fallback: str = FALLBACK) -> str:
    """The architecture of the first GPU of this machine, else `fallback`. Never raises."""
    return device_arch() or fallback
