#!/bin/sh
# A fresh Debian in memory, in namespaces that are there already, then what
# happens in it: fresh.sh WORK BASE_TAR MIRROR DEBS SCRIPT.  SCRIPT gets the root
# directory.  For fresh.py.

set -e
work=$1 tar=$2 mirror=$3 debs=$4 script=$5
root=$work/root

mount --make-rprivate /
mkdir "$root"
mount -t tmpfs tmpfs "$root"
tar -xf "$tar" -C "$root"

mount -t proc proc /proc        # of these namespaces, for SCRIPT
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts" "$root/run/lock"
chmod 1777 "$root/dev/shm" "$root/run/lock"
for node in null zero random urandom full tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
ln -s /proc/self/fd "$root/dev/fd"
ip link set lo up

# Debian's packages: those that a mirror in the next room has.
mkdir "$root/mirror"
mount --bind "$mirror" "$root/mirror"
rm -rf "$root"/var/lib/apt/lists/* "$root"/etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/mirror ./' >"$root/etc/apt/sources.list"
chroot "$root" apt-get update -qq

# A user who may use sudo, and has fetched our packages.
hostname evening
cat >"$root/etc/hosts" <<END
127.0.0.1 localhost evening
127.0.1.1 gpu1
127.0.1.2 gpu2
END
chroot "$root" useradd --create-home --shell /bin/bash somebody
echo 'somebody ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/somebody"
mkdir "$root/home/somebody/llmgw"
cp "$debs"/*.deb "$root/home/somebody/llmgw"

exec "$script" "$root"
