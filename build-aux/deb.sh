#!/bin/sh
# Builds the Debian packages in a copy of the tree, so that neither disturbs the
# other, and puts them into OUT; those with debug symbols into OUT/debug.
# usage: deb.sh OUT
#
# Version and date of the changelog are those of VERSION and of the last commit,
# so that two builds of a commit are alike.  Outside a clone the date is
# that of VERSION.
#
# DEB_SUITE is another release of Debian, to build for: in a clean root of it, made
# by mmdebstrap for this once.  nginx's modules have another ABI in each release.

set -eu
unset MAKEFLAGS MFLAGS          # what "make deb" was told is not for the copy
out=$1
version=$(cat VERSION)
mkdir -p "$out"
out=$(cd "$out" && pwd)
copy=$out/llmgw-$version
rm -rf "$copy" "$out"/*.deb "$out/debug"
mkdir -p "$copy" "$out/debug"

files() {
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard --deduplicate
    else
        find . -path ./build -prune -o -type f -print0
    fi
}
files | tar --null -T - --ignore-failed-read -cf - | tar -xf - -C "$copy"
date=$(git log -1 --format=%cD 2>/dev/null) || date=$(date -Rr VERSION)

cat >"$copy/debian/changelog" <<END
llmgw ($version) unstable; urgency=medium

  * See /usr/share/doc/llmgw/CHANGELOG.md, of the package llmgw-doc.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $date
END

export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-parallel=$(nproc) nocheck}"
build() {
    cd "$copy" && dpkg-buildpackage -b -us -uc
}

build_in_root() {
    export copy out
    mmdebstrap --variant=buildd --format=null \
        --customize-hook='cp -r "$copy" "$1/llmgw"' \
        --customize-hook='chroot "$1" apt-get -y build-dep /llmgw' \
        --customize-hook='chroot "$1" env -u CC sh -c \
            "cd /llmgw && dpkg-buildpackage -b -us -uc"' \
        --customize-hook='cp "$1"/*.deb "$1"/*.buildinfo "$1"/*.changes "$out"' \
        "$DEB_SUITE"
}

"build${DEB_SUITE:+_in_root}" >"$out/build.log" 2>&1 || {
    tail -n 40 "$out/build.log" >&2
    echo "llmgw: could not build the packages, see $out/build.log" >&2
    exit 1
}
cd "$out"
mv ./*-dbgsym_*.deb debug/
rm ./*.changes                 # for an archive; it names files of debug/
rm -rf "$copy"
ls ./*.deb
