#!/bin/sh
# debian/tests, by autopkgtest in that root: autopkgtest.sh ROOT.

set -e
root=$1
sources=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
mkdir "$tree/debian"
touch "$tree/debian/files"      # a tree that is built: nothing to build it with
cp -r "$sources/debian/control" "$sources/debian/tests" "$tree/debian"
dpkg-deb --fsys-tarfile "$root"/home/somebody/llmgw/llmgw_*.deb |
    tar -xO ./usr/share/doc/llmgw/changelog.gz | gunzip >"$tree/debian/changelog"
exec autopkgtest --no-built-binaries \
    "$root"/home/somebody/llmgw/*.deb "$tree" -- chroot "$root"
