#!/bin/sh
# Boots systemd as the first process of namespaces of its own, over a copy of
# this machine's root that is thrown away: booted.sh WORK_DIR.  In WORK_DIR is
# overlay/, which is laid over that root; its /look runs when all is up.  The
# terminal is the console.  For booted.py.

set -e
work=$1
root=$work/root

mount --make-rprivate /
mkdir -p "$root" "$work/layers"
mount -t tmpfs tmpfs "$work/layers"
mkdir "$work/layers/upper" "$work/layers/work"
mount -t overlay overlay \
    -o "lowerdir=/,upperdir=$work/layers/upper,workdir=$work/layers/work" \
    "$root"

# No setting of this machine's kernel may change.
mount -t proc proc "$root/proc"
mount --bind /proc/sys "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
mkdir "$root/sys/fs/cgroup/systemd"
mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"

mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
for node in null zero random urandom full tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
ln -s pts/ptmx "$root/dev/ptmx"      # PrivateDevices looks for it
touch "$root/dev/console"
mount --bind "$(tty)" "$root/dev/console"
ip link set lo up

cp -r "$work/overlay/." "$root/"
: > "$root/etc/machine-id"
cat > "$root/etc/systemd/system/look.service" <<'EOF'
[Service]
Type=oneshot
ExecStart=/look
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
EOF
cat > "$root/etc/systemd/system/look.target" <<'EOF'
[Unit]
Requires=basic.target
After=basic.target
Wants=look.service
EOF

exec chroot "$root" env -i container=llmgw PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=look.target --log-level=notice
