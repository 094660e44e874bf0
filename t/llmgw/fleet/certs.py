"""Certificates, and who signs them."""

import dataclasses
import pathlib
import subprocess

from ..proc import place


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True,
                   capture_output=True)


@dataclasses.dataclass
class Authority:
    """A CA of its own, with its certificate in a file."""
    dir: pathlib.Path
    name: str

    def __post_init__(self):
        self.file = self.dir / f"{self.name}.crt"
        self.key = self.dir / f"{self.name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-subj",
                f"/CN={self.name}", "-keyout", self.key, "-out", self.file)

    def sign(self, name="IP:127.0.0.1", days=2):
        """A file with a certificate for that name, and its key."""
        pem = self.dir / f"{self.name} {name} {days}.pem".replace(":", "-")
        request, more = pem.with_suffix(".csr"), pem.with_suffix(".ext")
        more.write_text(f"subjectAltName={name}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-subj", "/CN=engine", "-keyout", pem, "-out",
                request)
        out = pem.with_suffix(".crt")
        openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey",
                self.key, "-set_serial", 2, "-days", days, "-extfile", more,
                "-out", out)
        pem.write_text(pem.read_text() + out.read_text())
        return pem


class Pki:
    """The CA that llmgwctl makes, and options of the ends that have its
    certificates."""

    def __init__(self, dir, name="pki"):
        self.dir = dir / name
        self._certs("init")
        self.ca = self.dir / "ca.crt"

    def _certs(self, what, *words):
        subprocess.run([place.binary("llmgwctl"), "certs", what, self.dir,
                        *words], check=True, capture_output=True)

    def issue(self, name, *options):
        """A new certificate, in the place of an earlier one, and its key."""
        self._certs("issue", name, "--force", *options)
        return self.dir / f"{name}.crt", self.dir / f"{name}.key"

    def pair(self, name):
        """The same, if there is none yet."""
        cert, key = self.dir / f"{name}.crt", self.dir / f"{name}.key"
        return (cert, key) if cert.exists() else self.issue(name)

    def special(self, name, extension, *more):
        """One that llmgwctl does not make: `openssl x509` takes more."""
        cert, key = self.dir / f"{name}.crt", self.dir / f"{name}.key"
        request, lines = cert.with_suffix(".csr"), cert.with_suffix(".ext")
        lines.write_text(extension + "\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out",
                request)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey",
                self.dir / "ca.key", "-set_serial", 2, "-extfile", lines,
                "-out", cert, *more)
        return cert, key

    def expired(self, name):
        return self.special(f"old-{name}", f"subjectAltName=DNS:{name}",
                            "-days", -1)

    # options

    def replica(self, name, clients=None, pair=None, ca=None):
        cert, key = pair or self.pair(name)
        return {"tls_cert": cert, "tls_key": key,
                "tls_client_ca": ca or self.ca, "tls_client_name": clients}

    def agent(self, name, pair=None, ca=None):
        cert, key = pair or self.pair(name)
        return {"tls_cert": cert, "tls_key": key, "tls_ca": ca or self.ca}

    def nginx(self, name="gw", pair=None, ca=None, more=""):
        """Lines of an upstream block."""
        cert, key = pair or self.pair(name)
        return (f"llmgw_ssl on; llmgw_ssl_certificate {cert};"
                f" llmgw_ssl_certificate_key {key};"
                f" llmgw_ssl_trusted_certificate {ca or self.ca}; {more}")
