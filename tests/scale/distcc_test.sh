#!/usr/bin/env bash
# fmha build --launcher distcc with a distccd on the loopback: the kernels are those of a build without it.
source "$(dirname "$0")/common.sh"
need distcc distccd clang++
arch=gfx942
port=$((20000 + $$ % 20000))
export DISTCC_DIR=$work/distcc DISTCC_HOSTS="127.0.0.1:$port/2" DISTCC_LOG=$work/client.log DISTCC_VERBOSE=1
mkdir -p "$DISTCC_DIR"
distccd --daemon --no-detach --listen 127.0.0.1 --port "$port" --allow 127.0.0.1 --jobs 2 --enable-tcp-insecure \
  --log-file "$work/server.log" >/dev/null 2>&1 &
server=$!
cleanup+=('kill "$server"')
sleep 1
kill -0 "$server" 2>/dev/null || skip "distccd does not start here: $(tail -1 "$work/server.log")"
status=0
"$fmha" build --arch "$arch" --sample 1 --no-cache --out "$work/plain" >"$work/said" 2>&1 || status=$?
((status != 2)) || skip "$(tail -1 "$work/said")"
((status == 0)) || fail "$(cat "$work/said")"
"$fmha" build --arch "$arch" --sample 1 --no-cache --out "$work/far" --launcher distcc >"$work/said" 2>&1 || fail "$(cat "$work/said")"
grep -q distcc "$work/far/build.ninja" || fail "build.ninja does not name distcc"
grep -q . "$work/client.log" || fail "distcc was not asked"
for object in "$work"/plain/obj/*.hsaco; do
  cmp "$object" "$work/far/obj/$(basename "$object")" || fail "distcc made other code"
done
