"""Libraries that come before the C library's functions: t/preload/."""

import subprocess

from .place import ROOT


def compiled(name, directory):
    """Compiles t/preload/NAME.c into the directory; the library's path."""
    made = directory / f"{name}.so"
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-Wall", "-Werror", "-shared",
                    "-fPIC", "-o", made, ROOT / f"t/preload/{name}.c"],
                   check=True)
    return str(made)
