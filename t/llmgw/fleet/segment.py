"""A members segment as it lies in its file (docs/members-segment.md)."""

import struct

GROUP_STATES = ["none", "init", "standby", "waking", "active"]
LIVENESS = ["ALIVE", "SUSPECT", "DEAD", "LEFT"]
SERVICES = ["STARTING", "READY", "STALLED", "STOPPED", "DOWN"]


def records(path):
    """By id, what it says of the state and the group of each member; None
    where it was read while it was written."""
    with open(path, "rb", buffering=0) as f:
        capacity, _, sequence, _, size = struct.unpack(
            "=IQQQI", f.read(44)[12:])
        buffer = (64 + capacity * (size + 64) + 4095) // 4096 * 4096
        f.seek(4096 + sequence % 2 * buffer)
        written, _, n = struct.unpack("=QQI", f.read(64)[:20])
        data = f.read(n * size)
    if written != sequence:
        return None
    return dict(_record(data[i * size:][:size]) for i in range(n))


def _record(data):
    liveness, service = struct.unpack_from("=BB", data, 377)
    said = {"liveness": LIVENESS[liveness], "service": SERVICES[service],
            "group": None}
    state, epoch, group, lock = struct.unpack_from("=B3xQ32sQ", data, 460)
    if group[0]:
        said.update(group=group.split(b"\0")[0].decode(),
                    group_state=GROUP_STATES[state], group_epoch=epoch,
                    group_lock=f"{lock:016x}")
    return data[:64].split(b"\0")[0].decode(), said
