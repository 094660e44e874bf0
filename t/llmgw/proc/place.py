"""Where the products are, and how they were built."""

import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[3]
HARNESS = ROOT / "t" / "llmgw"
BUILD = ROOT / "build"
PYTHON = "/usr/bin/python3"

# A path, since nginx starts its successor without searching $PATH.
_NGINX = os.environ.get("NGINX_BIN", "nginx")
NGINX = shutil.which(_NGINX) or _NGINX
MODULE = os.environ.get("LLMGW_SO", str(BUILD / "ngx_http_llmgw_module.so"))


def _flavour():
    try:
        return (BUILD / "flavour").read_text().strip()
    except OSError:
        return "release"


FLAVOUR = os.environ.get("LLMGW_BUILD") or _flavour()

# A sanitizer makes everything slower: time limits are multiplied by this.
SLOW = float(os.environ.get("LLMGW_SLOW")
             or {"asan": 4, "ubsan": 3, "tsan": 8}.get(FLAVOUR, 1))


# A real engine in place of the mock: its base URL, kind, and model's name.  Or
# llama.cpp's server, of which each test starts its own.
ENGINE_URL = os.environ.get("ENGINE_URL")
LLAMA_SERVER = os.environ.get("LLAMA_SERVER")
IS_REAL = bool(ENGINE_URL or LLAMA_SERVER)
ENGINE_KIND = os.environ.get("ENGINE_KIND", "vllm")
ENGINE_MODEL = os.environ.get("ENGINE_MODEL", "mock-model")


def binary(name):
    return str(BUILD / name)
