"""Certificates, and who signs them."""

import dataclasses
import pathlib
import subprocess


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
