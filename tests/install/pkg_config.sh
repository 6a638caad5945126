#!/usr/bin/env bash
# pkg_config.sh CMAKE BUILD CC VERSION WORK: the C example of an installation, which was moved since, is built by what pkg-config says, and runs.
set -euo pipefail
cmake=$1 build=$2 cc=$3 version=$4 work=$5
command -v pkg-config >/dev/null || { echo "not run: pkg-config is not installed"; exit 77; }
rm -rf "$work" && mkdir -p "$work"
for component in library development; do
  "$cmake" --install "$build" --prefix "$work/first place" --component "$component" >>"$work/install.log"
done
mv "$work/first place" "$work/prefix"
PKG_CONFIG_LIBDIR=$(dirname "$(find "$work/prefix" -name fmha.pc)")
export PKG_CONFIG_LIBDIR
for library in fmha fmha_reference; do
  [[ $(pkg-config --modversion "$library") == "$version" ]] || { echo "$library.pc has another version than $version"; exit 1; }
done
flags=$(pkg-config --cflags --libs fmha fmha_reference)
# Nothing of the tree or of the first place.
[[ $flags != *"$build"/lib* && $flags != *first* ]] || { echo "it says $flags"; exit 1; }
read -ra words <<<"$flags"
for source in "$work"/prefix/share/doc/fmha-development/examples/c/*.c; do
  "$cc" -std=c17 -o "$work/example" "$source" "${words[@]}" -lm
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir fmha) "$work/example"
done
