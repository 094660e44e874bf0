"""Two plots, if their figures were measured; and how plots look."""

import sys

from . import paired

SIZE = (5.6, 3.4)
DPI = 90
NAMES = ("nginx", "haproxy", "floor", "llmgw")


def figure(size=SIZE):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    made, axes = pyplot.subplots(figsize=size, dpi=DPI)
    axes.grid(alpha=0.3)
    return made, axes


def save(figure, path):
    path.parent.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})


def by_streams(results, path):
    made, axes = figure()
    axes.set_xscale("log")
    for name in NAMES:
        points = []
        for n in paired.STREAMS:
            row = results["streams"].get(str(n), {}).get("rows", {}) \
                .get(name, {})
            if "value" in row:
                points.append((n, row["value"]))
        if points:
            x = [n for n, _ in points]
            y = [v["median"] for _, v in points]
            axes.errorbar(x, y, yerr=[
                [v["median"] - v["min"] for _, v in points],
                [v["max"] - v["median"] for _, v in points]],
                marker="o", markersize=4, capsize=2, label=name)
    axes.set_xticks(paired.STREAMS, map(str, paired.STREAMS))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("streams, a token each 100 ms")
    axes.set_ylabel("us of CPU a token")
    axes.legend()
    save(made, path)


def by_replicas(results, path):
    """Whole requests through nginx, and the ring's part of them."""
    made, axes = figure()
    axes.set_xscale("log")
    rows = {int(n): r["us_per_request"] for n, r in results["scale"].items()
            if "us_per_request" in r}
    ring = {int(n): r["pick_ns"] / 1000
            for n, r in results.get("micro", {}).get("ring", {}).items()}
    for label, of in (("a request, in nginx", rows),
                      ("the pick in it", ring)):
        if of:
            axes.plot(sorted(of), [of[n] for n in sorted(of)], marker="o",
                      markersize=4, label=label)
    axes.set_yscale("log")
    axes.set_xlabel("replicas")
    axes.set_ylabel("us of CPU")
    axes.legend()
    save(made, path)


def draw(results, directory):
    """{part: path} of the plots that could be drawn."""
    made = {}
    for part, call, name in (("streams", by_streams, "cpu-by-streams.png"),
                             ("scale", by_replicas, "cpu-by-replicas.png")):
        if not results.get(part):
            continue
        try:
            call(results, directory / name)
            made[part] = f"{directory.name}/{name}"
        except (ImportError, OSError, ValueError) as e:
            print(f"no {name}: {e} (python3-matplotlib; make bench-deps)",
                  file=sys.stderr)
    return made
