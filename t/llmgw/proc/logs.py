"""What no log may hold at the end of a test."""

import re

_SANITIZER = re.compile(r"AddressSanitizer|ThreadSanitizer|LeakSanitizer"
                        r"|UndefinedBehaviorSanitizer|runtime error:")
_ALERT = re.compile(r"\[(alert|emerg|crit)\]")
_CRASH = re.compile(r"Assertion .* failed|core dumped"
                    r"|ended \(signal (4|6|7|8|11)\)")


def complaints(path, allow=()):
    """Lines that fail a test; allow: patterns of [alert]s it provoked."""
    found = []
    for line in path.read_text(errors="replace").splitlines():
        if _SANITIZER.search(line) or _CRASH.search(line):
            found.append(f"{path.name}: {line}")
        elif _ALERT.search(line) and not any(re.search(a, line)
                                             for a in allow):
            found.append(f"{path.name}: {line}")
    return found


def tail(path, lines=40):
    text = path.read_text(errors="replace").splitlines()
    return "\n".join(text[-lines:])
