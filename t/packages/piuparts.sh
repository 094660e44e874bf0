#!/bin/sh
# piuparts in that root: what installation and purge of our packages leave, and
# whether removal needs what is not there any more.  piuparts.sh ROOT.

set -e
root=$1
# Of packages that are there already; the last is logrotate's, which it runs.
ignored="--ignore /var/cache/debconf/tmp.ci/ --ignore /var/lib/logrotate/status"
umount "$root/proc" "$root/sys"        # piuparts copies the root, and has its own
exec piuparts --existing-chroot "$root" --keep-sources-list $ignored \
    --skip-minimize --no-upgrade-test -d bookworm \
    "$root"/home/somebody/llmgw/*.deb
