#!/usr/bin/env bash
# bare_debian.sh CMAKE BUILD SOURCE WORK: the Debian packages of BUILD, installed by apt into a Debian 12 that has nothing but its base, used there, and removed
# again. The base is kept in WORK. Needs root, debootstrap and Debian's archive; exit code 77 and the reason where one is missing.
set -euo pipefail
cmake=$1 build=$2 source=$3 work=$4
((EUID == 0)) || { echo "not run: only root may make a Debian to install into"; exit 77; }
command -v debootstrap >/dev/null || { echo "not run: debootstrap is not installed"; exit 77; }
root=$work/root
mkdir -p "$work"
if [[ ! -e $work/base_is_there ]]; then
  rm -rf "$root"
  debootstrap --variant=minbase bookworm "$root" >"$work/debootstrap.log" 2>&1 || { echo "not run: debootstrap says $(tail -1 "$work/debootstrap.log")"; exit 77; }
  touch "$work/base_is_there"
fi
# With processes of its own, because programs find their files by /proc.
inside() { unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
ours='fmha|libfmha|libfmha-dev|libfmha-devices|python3-fmha'
rm -rf "$work/packages" "$root/packages" && mkdir "$root/packages"
(cd "$build" && "${cmake%/*}/cpack" --config CPackConfig.cmake -B "$work/cpack" -D CPACK_OUTPUT_FILE_PREFIX="$work/packages" >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }
cp "$work"/packages/*.deb "$root/packages"
inside apt-get update -qq >"$work/apt.log" 2>&1 || { echo "not run: apt-get update says $(tail -1 "$work/apt.log")"; exit 77; }
inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/fmha_*.deb /packages/libfmha_*.deb /packages/libfmha-dev_*.deb /packages/python3-fmha_*.deb' >>"$work/apt.log" 2>&1 ||
  { tail -5 "$work/apt.log"; exit 1; }
# The plugins need a GPU's runtime, which is large; that Debian could install it is enough.
! ls "$root"/packages/libfmha-devices_*.deb >/dev/null 2>&1 || inside sh -c 'apt-get install --simulate -qq /packages/libfmha-devices_*.deb' >>"$work/apt.log" 2>&1 ||
  { echo "libfmha-devices cannot be installed:"; tail -5 "$work/apt.log"; exit 1; }

inside fmha --version
[[ $(inside fmha enumerate --arch gfx942 --rules house --family fwd --count | tail -1) =~ ^[1-9][0-9]*" kernels"$ ]]
# Headers that kernels are compiled from came with the command; a compiler is the next thing that it misses.
said=$(inside fmha generate --arch gfx942 --kernel 'fwd_gfx942_fp16_batch_h128x128_qr_t128*' --max-kernels 1 --out /root/kernels 2>&1)
[[ $said == *"no compiler for gfx942"* ]] || { echo "fmha generate says: $said"; exit 1; }
files=$(inside dpkg -L fmha)
[[ $files == */man1/fmha-verify.1* ]] || { echo "fmha has no man pages: $files"; exit 1; }
cp "$source/dispatcher/examples/python/attention.py" "$root/root/attention.py"
inside python3 /root/attention.py
# With nothing but a compiler beside them the examples in C++ and C are built from their installed sources, and each says that it is right.
inside apt-get install -y -qq --no-install-recommends g++ cmake make >>"$work/apt.log" 2>&1 || { tail -5 "$work/apt.log"; exit 1; }
inside sh -c 'rm -rf /root/examples && cmake -S /usr/share/doc/fmha-development/examples/packages -B /root/examples && cmake --build /root/examples' >"$work/examples.log" 2>&1 || { tail -20 "$work/examples.log"; exit 1; }
inside ctest --test-dir /root/examples --no-tests=error --output-on-failure
inside sh -c 'ldd /usr/bin/fmha /usr/lib/libfmha*.so.*' >"$work/ldd.log"
! grep "not found" "$work/ldd.log" || exit 1

inside sh -c "apt-get purge -y -qq \$(dpkg-query -W -f '\${Package}\n' | grep -xE '$ours')" >>"$work/apt.log" 2>&1
left=$(inside sh -c 'find /usr /etc /var/lib -name "*fmha*" -not -path "/var/lib/dpkg/*"')
[[ -z $left ]] || { echo "left behind: $left"; exit 1; }
