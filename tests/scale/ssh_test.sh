#!/usr/bin/env bash
# harness/scale/parallel.sh over ssh: of two hosts one is dead, and its shards move to the other one.
source "$(dirname "$0")/common.sh"
need parallel python3 ssh sshd ssh-keygen
port=$((20000 + $$ % 20000))
chmod 700 "$work"
ssh-keygen -q -t ed25519 -N "" -f "$work/host"
ssh-keygen -q -t ed25519 -N "" -f "$work/user"
cp "$work/user.pub" "$work/authorized"
cat >"$work/sshd_config" <<END
Port $port
ListenAddress 127.0.0.1
HostKey $work/host
PidFile $work/sshd.pid
AuthorizedKeysFile $work/authorized
PasswordAuthentication no
StrictModes no
UsePAM no
END
mkdir -p /run/sshd 2>/dev/null || true
"$(command -v sshd)" -f "$work/sshd_config" -E "$work/sshd.log" || skip "sshd does not start here: $(tail -1 "$work/sshd.log")"
cleanup+=('kill "$(cat "$work/sshd.pid")"')
cat >"$work/ssh_config" <<END
Host alive dead
  HostName 127.0.0.1
  User $(id -un)
  Port $port
  IdentityFile $work/user
  StrictHostKeyChecking no
  UserKnownHostsFile $work/known
  BatchMode yes
  ConnectTimeout 5
Host dead
  ProxyCommand false
END
printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "$work/ssh_config" >"$work/ssh"
chmod 755 "$work/ssh"
"$work/ssh" alive true || skip "this account takes no key over ssh: $(tail -1 "$work/sshd.log")"
if "$work/ssh" dead true 2>/dev/null; then fail "the dead host lives"; fi
"$root/harness/scale/parallel.sh" "$work/ssh alive,$work/ssh dead" 4 "$work/run" "${arguments[@]}" || fail "exit code $?"
same_as_whole "$work/run"
awk '$2 ~ /dead/ { dead = 1 } END { exit dead }' "$work/run/jobs.log" || fail "a dead host has an answer: $(cat "$work/run/jobs.log")"
# Without a living host every shard is named.
status=0
"$root/harness/scale/parallel.sh" "$work/ssh dead" 2 "$work/lost" "${arguments[@]}" >"$work/said" 2>&1 || status=$?
((status != 0)) || fail "a run without hosts is green"
grep -q "some shards gave no report" "$work/said" || fail "$(cat "$work/said")"
