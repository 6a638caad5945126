#!/usr/bin/env bash
# fmha build refuses distcc because it would compile here alone. A real distcc with a distccd on the loopback says whether that is so.
source "$(dirname "$0")/common.sh"
arch=gfx942
if "$fmha" build --arch "$arch" --family fwd --sample 1 --no-cache --out "$work/refused" --launcher distcc >"$work/said" 2>&1; then
  fail "distcc is taken"
fi
if grep -q "no compiler for" "$work/said"; then skip "$(tail -1 "$work/said")"; fi
grep -q "distcc compiles HIP and CUDA sources on this machine alone" "$work/said" || fail "$(cat "$work/said")"
need distcc distccd
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
"$fmha" generate --arch "$arch" --family fwd --sample 1 --out "$work/kernels" >/dev/null
# The compile command of build.ninja behind distcc, of a source that takes no time.
command=$(sed -n "s/^  command = \\(.*\\) -c .*/\\1/p;T;q" "$work/kernels/build.ninja")
[[ $command == *" -x hip "* ]] || fail "build.ninja compiles otherwise: $command"
echo '__attribute__((global)) void kernel(int* p) { *p = 1; }' >"$work/one.hip"
eval "distcc $command -c $work/one.hip -o $work/one.o" 2>"$work/said" || fail "$(cat "$work/said")"
grep -q "on localhost completed ok" "$work/client.log" || fail "distcc sends HIP now, and fmha build could take it"
! grep -q "COMPILE_OK" "$work/server/log" || fail "the server compiled HIP, and fmha build could take distcc"
# The same server does compile what distcc knows, so that the lines above say something.
echo 'int one() { return 1; }' >"$work/one.cpp"
distcc c++ -c "$work/one.cpp" -o "$work/one.o" || fail "distcc does not work here"
grep -q "COMPILE_OK" "$work/server/log" || fail "the server compiles nothing: $(tail -3 "$work/server/log")"
