#!/bin/sh
# Configures nginx's build of our module without touching nginx's sources: its
# configure script writes into its own directory, so it runs in a directory of
# links.
#
# usage: nginx_configure.sh NGINX_SRC MODULE_DIR OBJS CC CC_OPT LD_OPT

set -eu
src=$1 module=$2 objs=$3 cc=$4 cc_opt=$5 ld_opt=$6

[ -x "$src/configure" ] || [ -x "$src/auto/configure" ] || {
    echo "llmgw: no nginx sources in NGINX_SRC=$src (Debian: nginx-dev)" >&2
    exit 1
}
rm -rf "$objs"
mkdir -p "$objs/src"
for f in auto conf contrib docs man src; do
    [ -e "$src/$f" ] && ln -s "$src/$f" "$objs/src/$f"
done
if [ -x "$src/configure" ]; then
    ln -s "$src/configure" "$objs/src/configure"
else
    ln -s "$src/auto/configure" "$objs/src/configure"
fi

# Debian's nginx is built with these options, and --with-compat makes a module
# fit any nginx of the same version that has them.
cd "$objs/src"
./configure --builddir="$objs" --with-compat --with-cc="$cc" \
    --with-threads --with-http_ssl_module --with-http_v2_module \
    --with-cc-opt="$cc_opt" --with-ld-opt="$ld_opt" \
    --add-dynamic-module="$module" >"$objs/configure.log" 2>&1 || {
    tail -n 20 "$objs/configure.log" >&2
    echo "llmgw: nginx's configure failed, see $objs/configure.log" >&2
    exit 1
}
