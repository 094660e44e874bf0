"""Libraries that come before the C library's functions: t/preload/."""

import os
import subprocess

from .place import BUILD, ROOT


def compiled(name, directory, *flags):
    """Compiles t/preload/NAME.c into the directory; the library's path."""
    made = directory / f"{name}.so"
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-Wall", "-Werror", "-shared",
                    "-fPIC", *flags, "-o", made, ROOT / f"t/preload/{name}.c"],
                   check=True)
    return str(made)


def llama_calls(directory):
    """llama_calls.c, which needs libllama's headers; made once."""
    made = directory / "llama_calls.so"
    if made.exists():
        return str(made)
    flags = subprocess.run(
        ["pkg-config", "--cflags", "llama"], capture_output=True, text=True,
        env={**os.environ, "PKG_CONFIG_PATH": ":".join(filter(None, [
            str(BUILD / "llama"), os.environ.get("PKG_CONFIG_PATH")]))},
        check=True).stdout.split()
    return compiled("llama_calls", directory, *flags)
