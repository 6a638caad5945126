#!/usr/bin/env bash
# harness/scale/slurm.sh with a Slurm of one node that this test starts, on ports and folders of its own.
source "$(dirname "$0")/common.sh"
need munged slurmctld slurmd sbatch scontrol python3
((EUID == 0)) || skip "munged and slurmd must be started by root"
port=$((20000 + $$ % 20000)) host=$(hostname -s)
mkdir -p "$work"/{munge,state,spool}
chmod 755 "$work"
head -c 1024 /dev/urandom >"$work/munge/key"
chmod 400 "$work/munge/key"
chmod 755 "$work/munge"
munged --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
  --log-file="$work/munge/log" --seed-file="$work/munge/seed" || skip "munged does not start here: $(tail -1 "$work/munge/log")"
cleanup+=('kill "$(cat "$work/munge/pid")"')
cat >"$work/slurm.conf" <<CONF
ClusterName=fmha
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -f "$SLURM_CONF" || skip "slurmctld does not start here"
cleanup+=('kill "$(cat "$work/slurmctld.pid")"')
slurmd -f "$SLURM_CONF" || skip "slurmd does not start here: $(tail -1 "$work/slurmd.log")"
cleanup+=('kill "$(cat "$work/slurmd.pid")"')
for ((i = 0; i < 60; i++)); do
  [[ $(sinfo -h -o %t 2>/dev/null) == idle ]] && break
  sleep 1
done
[[ $(sinfo -h -o %t) == idle ]] || skip "the node does not come up: $(tail -1 "$work/slurmd.log")"
timeout 240 "$root/harness/scale/slurm.sh" 3 "$work/run" "${arguments[@]}" || fail "exit code $?: $(cat "$work"/run/*.log)"
same_as_whole "$work/run"
