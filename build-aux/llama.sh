#!/bin/sh
# Fetches libllama for the engine `llama`: sh build-aux/llama.sh DIR
#
# DIR gets lib/, include/, LICENSE and llama.pc.  The libraries come from one
# npm package, the headers from the sources in another: the versions below
# belong together, and the sums say what came.  Nothing of it is run.

set -eu
dir=$1
version=0.5.0
libs=@node-llama-cpp/linux-x64@3.22.1
libs_sum=e6e0820cda9608d7da026f1a47f533c5ba381c1a4a80d17dd640873dea4a8603\
2057638099ab6879f6ce94c8a1b2a0a21f639ddf913f7941d00856df44126e3a
sources=node-llama-cpp@3.22.1
sources_sum=6e5b488a9b9699cd76dc7eed30880318a4ac4ab866865418795502e3c5d38d\
55bb5c624988927209d95333343f2e25a83e4183a5c2f816f883a60c3ba9f4e20f

fail() {
    echo "llmgw: $1" >&2
    echo "llmgw: all else works without libllama; with one of your own:" \
        "make build LLAMA_DIR=DIR" >&2
    exit 1
}

stamp="$version $libs_sum $sources_sum"
[ "$(cat "$dir/fetched" 2>/dev/null)" != "$stamp" ] || exit 0

[ "$(uname -sm)" = "Linux x86_64" ] \
    || fail "these libraries are for Linux on x86-64 only"
for tool in npm git tar sha512sum; do
    command -v $tool >/dev/null 2>&1 || fail "\"make llama\" needs $tool"
done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

pack() {    # PACKAGE
    (cd "$tmp" && timeout 300 npm pack --silent --ignore-scripts \
        --prefer-offline "$1" >name 2>log)
}

again() {   # a network has its moments
    sleep 10
    pack "$1"
}

fetch() {   # PACKAGE SUM NAME
    pack "$1" || again "$1" || again "$1" || {
        tail -n 5 "$tmp/log" >&2
        fail "cannot fetch $1 from npm: is there a network?"
    }
    file=$tmp/$(tail -n 1 "$tmp/name")
    echo "$2  $file" | sha512sum -c --quiet >/dev/null 2>&1 \
        || fail "$1 is not the file that was tested: its SHA-512 differs"
    mkdir "$tmp/$3"
    tar -xzf "$file" -C "$tmp/$3"
}

echo "llmgw: fetching libllama $version (46 MB)"
fetch $libs $libs_sum libs
fetch $sources $sources_sum sources

git clone -q --bare "$tmp/sources/package/llama/gitRelease.bundle" \
    "$tmp/git" 2>"$tmp/log" || fail "cannot read the sources' bundle"
git --git-dir="$tmp/git" archive HEAD include ggml/include LICENSE \
    | tar -x -C "$tmp"

new=$tmp/new
mkdir -p "$new/lib" "$new/include"
cp "$tmp/libs/package/bins/linux-x64"/libggml*.so \
    "$tmp/libs/package/bins/linux-x64"/libllama.v$version.so "$new/lib"
ln -s libllama.v$version.so "$new/lib/libllama.so"
ln -s libggml.v$version.so "$new/lib/libggml.so"
for header in include/llama ggml/include/ggml ggml/include/ggml-cpu \
    ggml/include/ggml-backend ggml/include/ggml-alloc \
    ggml/include/ggml-opt ggml/include/gguf; do
    cp "$tmp/$header.h" "$new/include"
done
cp "$tmp/LICENSE" "$new"
cat >"$new/llama.pc" <<END
prefix=\${pcfiledir}
libdir=\${prefix}/lib
Name: llama
Description: libllama, as llmgw fetched it
Version: $version
Libs: -L\${libdir} -lllama -lggml -lggml-base
Cflags: -I\${prefix}/include
END
echo "$stamp" >"$new/fetched"

rm -rf "$dir" "$dir.new"
mkdir -p "$(dirname "$dir")"
cp -a "$new" "$dir.new"
mv "$dir.new" "$dir"
echo "llmgw: libllama $version is in $dir"
