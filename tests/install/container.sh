#!/usr/bin/env bash
# container.sh CMAKE BUILD SOURCE WORK: the image of cmake/Containerfile, built with buildah from the Debian packages of BUILD, runs the command. No registry is asked:
# debootstrap makes the base, which is kept in WORK and goes by the name of Debian's image. The plugins are left out, because a GPU's runtime is large.
# Needs root, buildah, debootstrap and Debian's archive; exit code 77 and the reason where one is missing.
set -euo pipefail
cmake=$1 build=$2 source=$3 work=$4
((EUID == 0)) || { echo "not run: only root may make a Debian to build from"; exit 77; }
for tool in buildah debootstrap; do
  command -v "$tool" >/dev/null || { echo "not run: $tool is not installed"; exit 77; }
done
mkdir -p "$work"
if [[ ! -e $work/base_is_there ]]; then
  rm -rf "$work/base"
  debootstrap --variant=minbase bookworm "$work/base" >"$work/debootstrap.log" 2>&1 || { echo "not run: debootstrap says $(tail -1 "$work/debootstrap.log")"; exit 77; }
  rm -f "$work"/base/var/cache/apt/archives/*.deb
  touch "$work/base_is_there"
fi
rm -rf "$work/packages" && mkdir "$work/packages"
(cd "$build" && "${cmake%/*}/cpack" --config CPackConfig.cmake -B "$work/cpack" -D CPACK_OUTPUT_FILE_PREFIX="$work/packages" >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }
rm -f "$work"/packages/libfmha-devices_*.deb

# Images and containers of the test's own; processes are isolated by a chroot, which needs nothing of the kernel.
rm -rf "$work/store"
store() { local command=$1; shift; buildah --root "$work/store/root" --runroot "$work/store/run" --storage-driver vfs "$command" "$@"; }
trap 'rm -rf "$work/store"' EXIT
base=$(store from scratch)
store add --quiet "$base" "$work/base" / >/dev/null
store commit --quiet "$base" docker.io/library/debian:12 >/dev/null
store bud --isolation chroot --pull-never --file "$source/cmake/Containerfile" --tag fmha "$work/packages" >"$work/image.log" 2>&1 || { tail -20 "$work/image.log"; exit 1; }
image=$(store from --pull-never localhost/fmha)
inside() { store run --isolation chroot "$image" -- "$@"; }
[[ $(store inspect --type image --format '{{.OCIv1.Config.Cmd}}' localhost/fmha) == "[fmha --help]" ]]
[[ $(inside fmha --help) == *Subcommands:* ]]
[[ $(inside fmha enumerate --arch gfx950 --rules house --family fwd --count | tail -1) =~ ^[1-9][0-9]*" kernels"$ ]]
inside sh -c '! test -e /packages && test -z "$(ls -A /var/lib/apt/lists)"' || { echo "the image keeps what it was installed from"; exit 1; }
