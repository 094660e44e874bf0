#!/bin/sh
# Builds the packages of an earlier release into OUT: its sources, with the
# debian/, packaging/ and `make install` of now laid over them, since releases up
# to 0.2.0 had no packages.  OUT may be kept: a release does not change.
# usage: former.sh VERSION OUT

set -eu
version=$1 out=$2
commit=$(git log --reverse --format=%H -S"$version" -- VERSION | head -n 1)
[ -n "$commit" ] || {
    echo "llmgw: no commit here made the release $version" >&2
    exit 1
}
mkdir -p "$out"
out=$(cd "$out" && pwd)
copy=$out/tree
rm -rf "$copy"
git clone --quiet --shared --no-checkout . "$copy"
git -C "$copy" checkout --quiet "$commit"
rm -rf "$copy/packaging"
cp -r debian packaging build-aux "$copy"
sed -n '/^# Which Debian package/,/^deb:/{/^deb:/d;p}' Makefile >>"$copy/Makefile"

# What that release has not, or needs besides.
cd "$copy"
for list in debian/*.install; do
    while read -r file; do
        case $file in
        usr/*bin/*) grep -Eq "build/$(basename "$file")( |$)" Makefile ;;
        usr/share/man/*) [ -e "docs/man/$(basename "$file")" ] ;;
        esac || continue
        echo "$file"
    done <"$list" >list.new
    mv list.new "$list"
done
if grep -q yajl Makefile; then
    sed -i 's/^Build-Depends: /&libyajl-dev, /' debian/control
fi
grep -q '"check"' agent/settings.c || sed -i 's/--check/--version/' \
    debian/llmgw-agent.postinst
sh build-aux/deb.sh "$out"
rm -rf "$copy"
