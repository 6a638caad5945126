#!/usr/bin/env bash
# fmha build behind a real distcc: a distccd on the loopback compiles kernels of AMD, and their objects and resources are those of a build without it.
source "$(dirname "$0")/common.sh"
build() { "$fmha" build --arch gfx942,gfx1100 --family fwd --sample 2 --no-cache --audit --out "$work/$1" "${@:2}" >"$work/$1.said" 2>&1; }
build here || { grep -q "no compiler for" "$work/here.said" && skip "$(tail -1 "$work/here.said")"; fail "$(cat "$work/here.said")"; }
need distcc distccd python3
port=$((20000 + $$ % 20000))
# A server that root starts is another user, who must be able to write its log.
chmod 755 "$work"
mkdir -m 777 "$work/server"
export DISTCC_DIR=$work/distcc DISTCC_HOSTS="127.0.0.1:$port/2" DISTCC_LOG=$work/client.log DISTCC_VERBOSE=1
mkdir -p "$DISTCC_DIR"
distccd --daemon --no-detach --listen 127.0.0.1 --port "$port" --allow 127.0.0.1 --jobs 2 --enable-tcp-insecure \
  --log-level info --log-file "$work/server/log" >/dev/null 2>&1 &
server=$!
cleanup+=('kill "$server"')
sleep 1
kill -0 "$server" 2>/dev/null || skip "distccd does not start here: $(tail -1 "$work/server/log")"
build there --launcher distcc || fail "$(cat "$work/there.said")"
objects=$(find "$work/there/obj" -name '*.hsaco' | wc -l)
compiled=$(grep -c "COMPILE_OK" "$work/server/log")
[[ $objects -ge 2 && $compiled -eq $objects ]] || fail "$objects objects, but the server compiled $compiled: $(tail -3 "$work/server/log")"
! grep -q "running locally" "$work/client.log" || fail "$(grep "running locally" "$work/client.log")"
diff -r "$work/here/obj" "$work/there/obj" --exclude='*.log' || fail "objects from elsewhere are others"
# What the compiler said comes back, too: registers, LDS, scratch.
resources() { python3 -c 'import json,sys; print([(k["name"], {n: v for n, v in k["resources"].items() if n != "compile_ms"}) for o in json.load(open(sys.argv[1]))["objects"] for k in o["kernels"]])' "$work/$1/manifest.json"; }
[[ $(resources here) == *vgprs* && $(resources here) == "$(resources there)" ]] || fail "what the compiler said of registers and LDS differs"
# A compiler of CUDA does not go over, and says so.
if ! "$fmha" build --arch sm_90 --family fwd --sample 1 --no-cache --out "$work/cuda" --launcher distcc >"$work/said" 2>&1; then
  grep -qE "distcc compiles CUDA sources on this machine alone|no compiler for" "$work/said" || fail "$(cat "$work/said")"
else
  fail "distcc is taken for CUDA"
fi
