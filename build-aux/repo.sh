#!/bin/sh
# Makes a directory that apt can read, of the packages in DEBS: served by any web
# server, or used as it lies.  OUT/llmgw.sources is for /etc/apt/sources.list.d.
# usage: repo.sh DEBS OUT
#
# REPO_URL is where others will find the directory.  It is signed by REPO_KEY, a
# key of your own, or by one that is made at first and kept beside OUT.

set -eu
debs=$1 out=$2
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
cp "$debs"/*.deb "$out"
cd "$out"

apt-ftparchive packages . >Packages
gzip -9nk Packages
apt-ftparchive -o APT::FTPArchive::Release::Origin=llmgw \
    -o APT::FTPArchive::Release::Label=llmgw release . >Release.new
mv Release.new Release

gpg() { command gpg --batch --quiet --yes "$@"; }
if [ -z "${REPO_KEY:-}" ]; then
    REPO_KEY=llmgw-packages
    GNUPGHOME=$(dirname "$out")/repo-key
    export GNUPGHOME
    [ -d "$GNUPGHOME" ] || {
        mkdir -m 700 "$GNUPGHOME"
        gpg --passphrase '' --quick-generate-key "$REPO_KEY" ed25519 sign never
    }
    trap 'gpgconf --kill all' EXIT
fi
gpg --local-user "$REPO_KEY" --clearsign --output InRelease Release

cat >llmgw.sources <<END
Types: deb
URIs: ${REPO_URL:-file:$out}
Suites: ./
Signed-By:
$(gpg --armor --export "$REPO_KEY" | sed 's/^$/./; s/^/ /')
END
echo "$out"
