#!/usr/bin/env bash
# wheel_runs.sh CMAKE SOURCE BUILD PYTHON WORK: the wheel of BUILD runs where nothing else of the project is, and so does the package when
# it is installed for editing. Installs from files only.
set -euo pipefail
cmake=$1 source=$2 build=$3 python=$4 work=$5
"$python" -c 'import setuptools, wheel, pip, venv' 2>/dev/null || {
  echo "not run: $python lacks setuptools, wheel, pip or venv"
  exit 77
}
rm -rf "$work" && mkdir -p "$work"
"$cmake" -DSOURCE="$source" -DBUILD="$build" -DPYTHON="$python" -P "$source/cmake/wheel.cmake"
cat >"$work/use.py" <<'END'
import numpy as np
import fmha, fmha_utils
from fmha import find, reference

q, k, v = (np.random.default_rng(seed).standard_normal((1, 2, 40, 64)).astype(np.float16) for seed in range(3))
result = fmha.attention(q, k, v)
exact, _ = reference.attention(q, k, v, data_type="fp16")
assert abs(result.o - exact).max() < 2e-3
setup = fmha_utils.setup_fmha_dispatcher(fmha_utils.FmhaKernelConfig(hdim_q=64, hdim_v=64, gfx_arch="gfx950"))
assert setup.success and setup.runner.run(q, k, v, fmha_utils.FmhaProblem(1, 2, 2, 40, 40, 64, 64)).success, setup.error
print(fmha.__file__, find.library(), find.command())
END
use() { # ENVIRONMENT
  (cd "$work" && env -i HOME="$work" PATH=/usr/bin:/bin FMHA_JIT_DIR="$work/jit" "$work/$1/bin/python3" use.py)
}
install() { # ENVIRONMENT ARGUMENTS…
  "$python" -m venv --system-site-packages --without-pip "$work/$1"
  "$python" -m pip --python "$work/$1/bin/python3" install --quiet --no-index --no-deps --no-build-isolation "${@:2}"
}
install alone "$build"/wheel/fmha-*.whl
said=$(use alone)
echo "$said"
# All three lie in the environment.
[[ $(grep -o "$work/alone/lib/" <<<"$said" | wc -l) -eq 3 ]]
# The environment has the command.
[[ $(cd "$work" && env -i "$work/alone/bin/fmha" --version) == "$(env -i "$work"/alone/lib/python3*/site-packages/fmha/bin/fmha --version)" ]]
mkdir -p "$work/tree/dispatcher"
cp -r "$source/dispatcher/python" "$work/tree/dispatcher/"
cp "$source/CMakeLists.txt" "$work/tree/"
install editable --editable "$work/tree/dispatcher/python"
said=$(cd "$work" && FMHA_LIBRARY_DIR="$build/lib" FMHA_JIT_DIR="$work/jit" "$work/editable/bin/python3" use.py)
echo "$said"
[[ $said == "$work/tree/dispatcher/python/fmha/__init__.py "* ]]
said=$(cd "$work" && env -i "$work/editable/bin/fmha" --version 2>&1) && { echo "a command from nowhere: $said"; exit 1; }
[[ $said == "fmha: the command is not in $work/tree/"* ]] || { echo "without a command it says: $said"; exit 1; }
# It has no libraries of its own, and says where it looked for them.
said=$(cd "$work" && env -i HOME="$work" PATH=/usr/bin:/bin "$work/editable/bin/python3" -c 'import fmha; fmha.load()' 2>&1) &&
  { ldconfig -p | grep libfmha.so.5 >/dev/null || { echo "libraries from nowhere: $said"; exit 1; }; }
[[ -z $said || $said == *"libfmha.so is neither in $work/tree/"*"name its folder in FMHA_LIBRARY_DIR"* ]] || { echo "without libraries it says: $said"; exit 1; }
