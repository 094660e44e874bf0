"""The text format of Prometheus, as prometheus_client writes it."""


def _labels(labels):
    return "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" \
        if labels else ""


def gauge(name, value, labels=None, kind="gauge"):
    return (f"# HELP {name} As the engine has it.\n# TYPE {name} {kind}\n"
            f"{name}{_labels(labels)} {float(value)}\n")


def counter(name, value, labels=None):
    return gauge(name, value, labels, "counter")


def histogram(name, count, total, labels):
    rows = "".join(f"{name}_bucket{_labels({'le': le, **labels})}"
                   f" {float(count)}\n" for le in ("1.0", "8.0", "+Inf"))
    return (f"# HELP {name} As the engine has it.\n# TYPE {name} histogram\n"
            f"{rows}{name}_count{_labels(labels)} {float(count)}\n"
            f"{name}_sum{_labels(labels)} {float(total)}\n")


def padding(size):
    """Lines that nothing reads."""
    return ("# " + "x" * 77 + "\n") * (size // 80)


def text(*families):
    return "".join(families)
