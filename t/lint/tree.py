"""The files to check, and the findings."""

import pathlib
import re
import subprocess

NOT_OURS = {"build", ".git", "__pycache__", ".pytest_cache"}
NO_TEXT = re.compile(r"\.(png|pdf|bin|xz)$|(^|/)corpus/")


class Tree:
    """text: path -> contents, of all files that git has or would add."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = {p for p in self._listed() if (self.root / p).is_file()}
        self.text = {p: (self.root / p).read_text(errors="replace")
                     for p in sorted(self.files) if not NO_TEXT.search(p)}
        self.found = []

    def _listed(self):
        if (self.root / ".git").exists():
            out = subprocess.run(
                ["git", "ls-files", "-co", "--exclude-standard"],
                cwd=self.root, capture_output=True, text=True)
            if out.returncode == 0:
                return out.stdout.splitlines()
        return [str(p.relative_to(self.root)) for p in self.root.rglob("*")
                if not NOT_OURS & set(p.relative_to(self.root).parts)]

    def say(self, path, line, what):
        self.found.append((path, line, what))

    def of(self, *suffixes):
        return [p for p in self.text if p.endswith(suffixes)]

    def lines(self, path):
        """(number, line) of a file; nothing if there is no such file."""
        return enumerate(self.text.get(path, "").splitlines(), 1)

    def has(self, path):
        """Whether the repository has this file or folder."""
        path = path.rstrip("/")
        return path in self.files or any(
            p.startswith(path + "/") for p in self.files)


def folder(path):
    return path.rpartition("/")[0]
