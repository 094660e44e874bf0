"""The Debian packages have what `make install` installs, each file in one."""

import fnmatch
import pathlib
import re
import subprocess

import pytest

from llmgw.proc import place

DEBIAN = place.ROOT / "debian"
META = {"llmgw"}                    # depends, and has nothing
SETTINGS = dict(re.findall(r"\b([A-Z_]+)=(/\S+)",
                           (DEBIAN / "rules").read_text()))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The directory that a package build installs into.  What is built here is
    taken as it is."""
    root = tmp_path_factory.mktemp("install")
    subprocess.run(
        ["make", "-s", "-o", "daemons", "-o", "module", "install", "LLAMA=",
         f"BUILD={place.FLAVOUR}", f"DESTDIR={root}",
         *(f"{name}={value}" for name, value in SETTINGS.items())],
        cwd=place.ROOT, check=True, stdout=subprocess.DEVNULL)
    return root


def files(root):
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


def lists():
    """{package: its patterns}; "" has what no package takes."""
    found = {p.name.removesuffix(".install"): p.read_text().split()
             for p in DEBIAN.glob("*.install")}
    return {"": (DEBIAN / "not-installed").read_text().split(), **found}


def takes(pattern, file):
    return fnmatch.fnmatch(file, pattern) or file.startswith(pattern + "/")


def test_each_file_is_in_one_package(installed):
    wrong = []
    for file in sorted(files(installed)):
        packages = [package for package, patterns in lists().items()
                    for pattern in patterns if takes(pattern, file)]
        if len(packages) != 1:
            wrong.append((file, packages))
    assert not wrong


def test_packages_take_what_is_installed(installed):
    there = files(installed)
    assert there
    assert [(package, pattern) for package, patterns in lists().items()
            for pattern in patterns
            if not any(takes(pattern, file) for file in there)] == []


def test_packages_are_those_of_control():
    control = re.findall(r"^Package: (\S+)", (DEBIAN / "control").read_text(),
                         re.M)
    assert sorted(control) == sorted({*lists(), *META} - {""})


def test_units_and_examples_name_programs_that_are_installed(installed):
    there, named = files(installed), set()
    for file in there:
        if not file.startswith(("lib/systemd/", "etc/llmgw/")):
            continue
        text = (installed / file).read_text()
        assert "/usr/local" not in text, file
        named |= {(program, file) for program in re.findall(
            r"(?:ExecStart=|-- )/(usr/s?bin/[\w-]+)", text)}
    assert len(named) >= len(list((place.ROOT / "packaging" / "systemd")
                                  .glob("*.service")))
    assert {(program, file) for program, file in named
            if program not in there} == set()
    assert {pathlib.Path(p).parent.name for p, _ in named} == {"sbin"}
