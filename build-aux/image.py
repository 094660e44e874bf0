#!/usr/bin/python3
"""Makes an OCI image of our packages and Debian's: image.py NAME REPO OUT.

REPO is what `make repo` has made.  OUT/llmgw-NAME is an image layout with the
tag VERSION, OUT/llmgw-NAME.packages lists the packages that the image has files
of, OUT/llmgw-NAME.spdx.json is the same as an SBOM.

packaging/image/NAME says which files of which packages.  The packages are
extracted by mmdebstrap and not installed: no script of theirs runs.  The image
has those files, the libraries that they load, licenses, and nothing else: no
shell, no package manager.  It is the same, to the last byte, when packages and
commit are the same: all times in it are those of the commit.
"""

import datetime
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

SUITE = "bookworm"
ROOT = pathlib.Path(__file__).resolve().parents[1]
VERSION = (ROOT / "VERSION").read_text().strip()

# The user of all processes, and the folders that a runtime mounts something on.
ID = "65532"
FILES = {
    "etc/passwd": f"llmgw:x:{ID}:{ID}::/run:/usr/sbin/nologin\n",
    "etc/group": f"llmgw:x:{ID}:\n",
    "etc/hosts": "", "etc/hostname": "", "etc/resolv.conf": "",
}
FOLDERS = {"dev": 0o755, "proc": 0o755, "sys": 0o755, "etc/llmgw": 0o755,
           "var/lib/llmgw": 0o755, "run": 0o1777, "tmp": 0o1777}
ENV = {"PATH": "/usr/sbin:/usr/bin", "HOME": "/run", "XDG_STATE_HOME": "/run",
       "XDG_RUNTIME_DIR": "/run"}

# Where what looks for known faults finds the packages of an image without dpkg.
STATUS = "var/lib/dpkg/status.d"

# By "update-ca-certificates", were it installed.
AUTHORITIES = "usr/share/ca-certificates/mozilla/*.crt"
BUNDLE = "etc/ssl/certs/ca-certificates.crt"


def run(*argv, **more):
    done = subprocess.run(argv, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-4000:]}\nllmgw: no image, since this failed:"
                 f" {' '.join(map(str, argv))}")
    return done.stdout


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, text=True,
                          capture_output=True)
    return done.stdout.strip() if done.returncode == 0 else None


def read_about(name):
    """{key: values} of packaging/image/NAME."""
    about = {}
    for line in (ROOT / "packaging/image" / name).read_text().splitlines():
        if line and not line.startswith("#"):
            key, value = line.split(None, 1)
            about.setdefault(key, []).append(value)
    return about


def extract(about, repo, tree):
    run("mmdebstrap", "--variant=extract",
        "--skip=essential/unlink,cleanup/apt",
        f"--include={','.join(about['package'])}",
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        f"--setup-hook=echo 'deb [trusted=yes] copy:{repo} ./'"
        ' >"$1/etc/apt/sources.list.d/llmgw.list"', SUITE, tree)


# --- of what was extracted, that which the image has

def within(tree, path):
    """Where the path leads, by links that mean the tree's root by /."""
    real = tree
    for part in pathlib.Path(path).parts:
        real = real / part
        while real.is_symlink():
            to = os.readlink(real)
            real = (within(tree, to[1:]) if to.startswith("/")
                    else within(tree, (real.parent / to).relative_to(tree)))
    return real


def merged(name):
    """/lib64/ld.so is usr/lib64/ld.so."""
    return re.sub("^/?(bin|lib|lib64|sbin)/", r"usr/\1/", name.strip("/"))


def libraries(tree, file):
    """The names that the loader of that tree opens for a file."""
    with open(file, "rb") as f:
        if f.read(4) != b"\x7fELF":
            return
    loader, = glob.glob(f"{tree}/usr/lib/*/ld-linux*.so.*")
    said = subprocess.run(
        [loader, "--inhibit-cache", "--library-path", os.path.dirname(loader),
         "--list", file], text=True, capture_output=True).stdout
    if "not found" in said:
        sys.exit(f"llmgw: {file} needs a library that no package has:\n{said}")
    for name, path in re.findall(r"^\t(?:(\S+) => )?(/\S+) \(", said, re.M):
        yield merged(name if name.startswith("/")
                     else os.path.relpath(path, tree))


def choose(about, tree):
    """The names of files that the image has."""
    names = set()
    for pattern in about["file"]:
        found = glob.glob(pattern, root_dir=tree)
        if not found:
            sys.exit(f"llmgw: no package has {pattern}")
        names.update(found)
    for name in sorted(names):
        names.update(libraries(tree, within(tree, name)))
    return names


def owners(tree, names):
    """{(package, version, architecture): control} of what has any of those."""
    found = {}
    for deb in glob.glob(f"{tree}/var/cache/apt/archives/*.deb"):
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb],
                              stdout=subprocess.PIPE) as p, \
             tarfile.open(fileobj=p.stdout, mode="r|") as tar:
            has = {merged(member.name.removeprefix("./")) for member in tar}
        if has & names:
            about = tuple(run(
                "dpkg-deb", "-W", "--showformat",
                "${Package} ${Version} ${Architecture}", deb).split())
            found[about] = run("dpkg-deb", "--field", deb)
    return dict(sorted(found.items()))


def lay(tree, root, names, packages):
    """The image's root.  A link becomes the file that it leads to."""
    licenses = [f"usr/share/doc/{name}/copyright" for name, _, _ in packages]
    for name in [*sorted(names), *licenses]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(within(tree, name), root / name)
    for link in tree.iterdir():
        if link.is_symlink() and (root / os.readlink(link)).is_dir():
            (root / link.name).symlink_to(os.readlink(link))
    for name, mode in FOLDERS.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(mode)
    bundle = "".join(path.read_text()
                     for path in sorted(tree.glob(AUTHORITIES)))
    status = {f"{STATUS}/{about[0]}": text for about, text in packages.items()}
    for name, text in {**FILES, BUNDLE: bundle, **status}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


# --- what is said of it

def sbom(name, created, packages):
    """SPDX 2.3."""
    def described(package, version, arch):
        return {
            "SPDXID": "SPDXRef-" + package.replace("+", "-"),
            "name": package,
            "versionInfo": version,
            "supplier": "NOASSERTION",
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator":
                    f"pkg:deb/debian/{package}@{version}?arch={arch}"}]}

    packages = list(packages)
    digest = hashlib.sha256(json.dumps(packages).encode()).hexdigest()
    listed = [described(*package) for package in packages]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{VERSION}",
        "documentNamespace": f"https://llmgw.example/sbom/{name}/{digest}",
        "creationInfo": {"created": created, "creators": ["Tool: llmgw"]},
        "packages": listed,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT",
                           "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": package["SPDXID"]}
                          for package in listed]}


def labels(about, created):
    title, = about["title"]
    description, = about["description"]
    return {"title": title, "description": description, "version": VERSION,
            "created": created,
            "revision": git("rev-parse", "HEAD") or "unknown"}


def pack(about, root, layout, epoch, created):
    layer = layout.with_name("layer.tar")
    run("tar", "-C", root, "--sort=name", f"--mtime=@{epoch}", "--owner=0",
        "--group=0", "--numeric-owner", "-cf", layer, ".")
    image = f"{layout}:{VERSION}"
    run("umoci", "init", "--layout", layout)
    run("umoci", "new", "--image", image)
    run("umoci", "raw", "add-layer", "--image", image, "--history.created",
        created, "--history.created_by", "build-aux/image.py", layer)
    run("umoci", "config", "--image", image, "--no-history",
        "--created", created, "--os", "linux",
        "--architecture", run("dpkg", "--print-architecture").strip(),
        f"--config.user={ID}:{ID}", "--config.workingdir=/",
        *(f"--config.env={k}={v}" for k, v in ENV.items()),
        *(f"--config.label=org.opencontainers.image.{k}={v}"
          for k, v in labels(about, created).items()),
        *(f"--config.entrypoint={w}" for w in about.get("entrypoint", [])),
        *(f"--config.cmd={w}" for w in about["cmd"]),
        *(f"--config.exposedports={port}/tcp" for port in about["port"]))
    run("umoci", "gc", "--layout", layout)


def size(layout):
    return sum(f.stat().st_size for f in layout.glob("blobs/sha256/*"))


def main(name, repo, out):
    about = read_about(name)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or
                git("log", "-1", "--format=%ct") or
                (ROOT / "VERSION").stat().st_mtime)
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch)
    created = datetime.datetime.fromtimestamp(
        epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    os.umask(0o022)
    out = pathlib.Path(out) / f"llmgw-{name}"
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="llmgw-image-") as work:
        work = pathlib.Path(work)
        tree, root, layout = work / "tree", work / "root", work / "layout"
        extract(about, pathlib.Path(repo).resolve(), tree)
        names = choose(about, tree)
        packages = owners(tree, names | set(glob.glob(AUTHORITIES,
                                                      root_dir=tree)))
        lay(tree, root, names, packages)
        pack(about, root, layout, epoch, created)
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(layout, out)
    out.with_suffix(".packages").write_text("".join(
        f"{' '.join(package)}\n" for package in packages))
    out.with_suffix(".spdx.json").write_text(json.dumps(
        sbom(out.name, created, packages), indent=1) + "\n")
    index = json.loads((out / "index.json").read_text())
    print(f"{out}: {index['manifests'][0]['digest']},"
          f" {size(out) / 1e6:.1f} MB compressed")


if __name__ == "__main__":
    main(*sys.argv[1:])
