"""How long a takeover took, as the lock service and the engines logged it: they
and the test read one clock."""

from ..proc.wait import wait_for

PHASES = {"gone": "its last process is dead", "granted": "the standby has the "
          "lock", "active": "it serves"}


def phases(group, killed):
    """{phase: ms since killed (time.monotonic())} of the takeover since."""
    def found():
        gone = [e.mono for e in group.service.events("gone", group=group.name)]
        seen = {"gone": gone, "granted": [], "active": []}
        names = {"WAKING": "granted", "ACTIVE": "active"}
        for _, steps in group.lives():
            for step in steps:
                if step.state in names:
                    seen[names[step.state]].append(step.at)
        firsts = {what: min((at for at in times if at > killed), default=None)
                  for what, times in seen.items()}
        return None not in firsts.values() and firsts
    firsts = wait_for(found, "a takeover", takes=60)
    return {what: (firsts[what] - killed) * 1000 for what in PHASES}
