"""The version is that of the project. With FMHA_BUNDLE, a folder with lib/ and bin/ as `cmake --install --component portable` leaves
them, the wheel carries the libraries and the command and is one of this platform; without it, it is pure Python."""

import os
import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = Path(__file__).resolve().parent


def version() -> str:
    """From the project's CMakeLists.txt, or from PKG-INFO in an unpacked source package."""
    for file, pattern in ((HERE.parents[1] / "CMakeLists.txt", r"project\(fmha VERSION ([\d.]+)"), (HERE / "PKG-INFO", r"\nVersion: (\S+)")):
        if file.is_file():
            found = re.search(pattern, file.read_text(encoding="utf-8"))
            if found:
                return found[1]
    raise SystemExit("setup.py: the version stands neither in ../../CMakeLists.txt nor in PKG-INFO")


class Bundling(build_py):
    """Puts the libraries and the command into the package."""

    def run(self) -> None:
        super().run()
        bundle = os.environ.get("FMHA_BUNDLE")
        for folder in ("lib", "bin", "share") if bundle and not self.editable_mode else ():
            if (Path(bundle) / folder).is_dir():
                shutil.copytree(Path(bundle) / folder, Path(self.build_lib) / "fmha" / folder, dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns("libfmha.so", "libfmha_reference.so"))  # links to the versions


class OfThisPlatform(Distribution):
    def has_ext_modules(self) -> bool:
        return bool(os.environ.get("FMHA_BUNDLE"))


setup(version=version(), cmdclass={"build_py": Bundling}, distclass=OfThisPlatform)
