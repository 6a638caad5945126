#!/usr/bin/env bash
# packages_run.sh CMAKE BUILD PYTHON SOURCE WORK: the Debian packages of BUILD, unpacked into an empty root, run with nothing else of the project, and ask
# for packages that Debian has. Exit code 77: a tool is missing.
set -euo pipefail
cmake=$1 build=$2 python=$3 source=$4 work=$5
for tool in dpkg-deb dpkg-shlibdeps; do
  command -v "$tool" >/dev/null || { echo "not run: $tool is not installed"; exit 77; }
done
rm -rf "$work" && mkdir -p "$work/root"
(cd "$build" && "${cmake%/*}/cpack" --config CPackConfig.cmake -B "$work/cpack" -D CPACK_OUTPUT_FILE_PREFIX="$work/packages" >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }
mapfile -t packages < <(find "$work/packages" -maxdepth 1 -name '*.deb' | sort)
names=$(for package in "${packages[@]}"; do dpkg-deb --field "$package" Package; done | sort | tr '\n' ' ')
[[ $names =~ ^"fmha libfmha libfmha-dev "("libfmha-devices ")?"python3-fmha "$ ]] || { echo "packages are: $names"; exit 1; }

# Lists of packages show the first line of each description alone.
summaries=$(for package in "${packages[@]}"; do dpkg-deb --field "$package" Description | sed -n 1p; done | sort)
[[ $(uniq <<<"$summaries" | wc -l) == "${#packages[@]}" ]] || { echo "packages share a summary: $summaries"; exit 1; }
[[ $(wc -L <<<"$summaries") -lt 80 ]] || { echo "a summary is too long: $summaries"; exit 1; }

# No file is in two packages, and every dependency exists.
owned=$(for package in "${packages[@]}"; do dpkg-deb --contents "$package" | awk '!/\/$/ {print $6}'; done | sort | uniq -d)
[[ -z $owned ]] || { echo "in two packages: $owned"; exit 1; }
for package in "${packages[@]}"; do
  dpkg-deb --extract "$package" "$work/root"
  depends=$(dpkg-deb --field "$package" Depends)
  echo "$(dpkg-deb --field "$package" Package): $depends"
  [[ -n $depends ]]
  # Who has no GPU needs no runtime of one.
  [[ $package == *devices* || $depends != *hip* ]] || { echo "$package needs a GPU's runtime"; exit 1; }
  for needed in $(tr ',' '\n' <<<"$depends" | awk '{print $1}'); do
    [[ $needed == libfmha ]] || ! command -v apt-cache >/dev/null || [[ -n $(apt-cache pkgnames "$needed" | grep -x "$needed") ]] ||
      { echo "Debian has no $needed"; exit 1; }
  done
done

root=$work/root/usr
alone() { (cd "$work" && env -i HOME="$work" PATH="$root/bin:/usr/bin:/bin" LD_LIBRARY_PATH="$root/lib" PYTHONPATH="$root/lib/python3/dist-packages" \
  PYTHONDONTWRITEBYTECODE=1 "$@"); }
newest=$(sed -nE '/^## ([0-9.]+).*/ {s//\1/p;q}' "$source/CHANGELOG.md")
[[ $(alone fmha --version) == "fmha $newest" ]] || { echo "$(alone fmha --version), but the newest entry of CHANGELOG.md is $newest"; exit 1; }
alone fmha enumerate --arch gfx942 --rules house --family fwd --count | tail -1
cat >"$work/use.py" <<'END'
import numpy as np
import fmha
from fmha import find, reference

q, k, v = (np.random.default_rng(seed).standard_normal((1, 2, 40, 64)).astype(np.float16) for seed in range(3))
assert abs(fmha.attention(q, k, v).o - reference.attention(q, k, v, data_type="fp16")[0]).max() < 2e-3
print(fmha.__file__, find.library(), find.command())
END
[[ $(alone "$python" use.py) == "$root/lib/python3/dist-packages/fmha/__init__.py libfmha.so.5 $root/bin/fmha" ]]
# A C++ program outside of the tree finds what it needs in libfmha-dev and libfmha (install.cpp_consumer builds and runs it), every header included.
"$cmake" -S "$source/tests/install/cpp_consumer" -B "$work/cpp_consumer" -DCMAKE_PREFIX_PATH="$root" -DCMAKE_BUILD_TYPE=Debug >"$work/configure.log" ||
  { tail -5 "$work/configure.log"; exit 1; }
(cd "$root/include/fmha/cpp" && find . -name '*.hpp' -exec sed -nE 's/^#include "([^"]+)".*/\1/p' {} + | sort -u) >"$work/included.txt"
[[ $(wc -l <"$work/included.txt") -gt 50 ]]
while read -r header; do
  [[ -f $root/include/fmha/cpp/$header ]] || { echo "libfmha-dev lacks $header, which one of its headers includes"; exit 1; }
done <"$work/included.txt"
# Every subcommand has its page, and completion knows it.
for command in $(alone fmha --help | sed -n '/^Subcommands:/,/^$/ s/^  \([a-z]*\) .*/\1/p'); do
  grep -q "fmha\\\\-$command" <(zcat -f "$root/share/man/man1/fmha-$command.1"*)
  grep -q "[\" ]$command[\" ]" "$root/share/bash-completion/completions/fmha"
done
# The documents are those of this version, with their table of contents.
for document in $(sed -n 's/^| \[\([a-z_]*\.md\)\].*/\1/p' "$root/share/doc/fmha-command/docs/README.md"); do
  [[ -s $root/share/doc/fmha-command/docs/$document ]] || { echo "the package lacks the document $document"; exit 1; }
done
said=$(bash -c 'source "$1"; COMP_WORDS=(fmha verify --tier ""); COMP_CWORD=3; _fmha; echo "${COMPREPLY[*]}"' bash "$root/share/bash-completion/completions/fmha")
[[ $said == "full nightly smoke" ]] || { echo "completion of --tier says: $said"; exit 1; }
