#!/bin/sh
# Installs what build and tests need, or says why it cannot.
# Quick and silent when everything is there.

set -u
missing=
for p in $DEB_PACKAGES; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null \
        | grep -q 'install ok installed' || missing="$missing $p"
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "llmgw: not Debian; please install the equivalents of:$missing" >&2
    exit 1
fi
SUDO=
if [ "$(id -u)" -ne 0 ]; then
    SUDO=sudo
    command -v sudo >/dev/null 2>&1 || {
        echo "llmgw: please run as root: apt-get install$missing" >&2
        exit 1
    }
fi
echo "llmgw: installing$missing"

# Where a service manager runs, the packages of nginx and Prometheus start
# services on ports 80 and 9090; a build machine needs only the binaries.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt() {     # another apt may be at work, and a network has its moments
    $SUDO apt-get -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 -q "$@"
}
install() {
    apt install -y --no-install-recommends $missing
}
again() {
    sleep 10
    apt update && install
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ install || { apt update && install; } || again || again; } >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    echo "llmgw: could not install:$missing" >&2
    echo "llmgw: install them by hand, then run make build" >&2
    exit 1
}
