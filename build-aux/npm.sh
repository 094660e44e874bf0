#!/bin/sh
# usage: npm.sh DIRECTORY FOLDER WHAT
#
# Installs there what FOLDER/package-lock.json names, for the tests that need WHAT.
# Without npm, without a Node that it runs on, or without a registry it says so
# and succeeds: the tests then skip, and say why, from DIRECTORY/missing.

set -u
dir=$1
here=$2
what=$3

mkdir -p "$dir"
give_up() {
    echo "$1" > "$dir/missing"
    echo "llmgw: tests without $what: $1" >&2
    exit 0
}

command -v npm >/dev/null 2>&1 || give_up "npm is not installed"
node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null ||
    give_up "Node 20 or newer is needed, there is $(node --version 2>&1)"

cp "$here/package.json" "$here/package-lock.json" "$dir"
(cd "$dir" && timeout 180 npm ci --ignore-scripts --no-audit --no-fund \
    --prefer-offline --fetch-retries=2 --fetch-retry-mintimeout=2000 \
    --fetch-timeout=30000 >npm.log 2>&1) ||
    give_up "npm ci failed: $(grep -m1 'npm error' "$dir/npm.log")"
rm -f "$dir/missing"
touch "$dir/installed"
