"""Libraries that come before the C library's functions: t/preload/."""

import functools
import os
import pathlib
import subprocess
import tempfile

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


def late(argv, env):
    """Adds late_events.c, for the programs that LLMGW_LATE names."""
    programs = os.environ.get("LLMGW_LATE", "").split(",")
    if not {pathlib.Path(word).name for word in argv[:2]} & set(programs):
        return env
    libraries = [_late_events()[0], env.get("LD_PRELOAD")]
    return {**env, "LD_PRELOAD": ":".join(filter(None, libraries))}


@functools.cache
def _late_events():
    """Its path, and the directory, which ends with this process."""
    directory = tempfile.TemporaryDirectory()
    return compiled("late_events", pathlib.Path(directory.name)), directory
