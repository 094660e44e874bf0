"""What bench/policies.py measured, as tables and plots of docs/policies.md."""

import statistics
import sys
import textwrap

from . import machine, page, plots, policies
from .goals import span
from .tables import table

PICTURES = machine.ROOT / "docs" / "img"

P99_LIMIT, HITS_LEAST = 1.05, 3     # of the goal, for turns


def line(got):
    return (f"hits {got['hits']:.1%}, first token p50 {got['p50']:.0f} ms,"
            f" p99 {got['p99']:.0f} ms, load {got['load_jain']:.3f},"
            f" {got['seconds']:.0f} s, idle {got['idle']:.0%}")


def values(rounds, policy, key):
    return [r[policy][key] for r in rounds
            if policy in r and "fail" not in r[policy]]


def summary(of):
    return {"median": statistics.median(of), "min": min(of), "max": max(of)}


def ratios(rounds, policy, key):
    """To the base, round by round."""
    return [r[policy][key] / r[policies.BASE][key] for r in rounds
            if all("fail" not in r.get(p, {"fail": 1})
                   for p in (policy, policies.BASE)) and
            r[policies.BASE][key]]


def failures(rounds, policy):
    return [r[policy]["fail"] for r in rounds if "fail" in r.get(policy, {})]


def has_clients(rounds):
    return any(got.get("clients", 0) > 1 for r in rounds
               for got in r.values())


def row(rounds, policy):
    why = failures(rounds, policy)
    if why:
        return [policy, f"FAIL: {why[0]}"] + [""] * 7

    def of(key, digits, times=1):
        return span(summary([v * times for v in
                             values(rounds, policy, key)]), digits)
    to_base = ratios(rounds, policy, "p99")
    return [policy, of("hits", 1, 100), of("p50", 0), of("p99", 0),
            "1" if policy == policies.BASE
            else span(summary(to_base)) if to_base else "-",
            of("load_jain", 3), of("load_max", 2),
            of("clients_jain", 3) if has_clients(rounds) else "-"]


HEAD = ["", "hits, %", "first token p50, ms", "p99, ms", "p99 x round_robin",
        "load, Jain", "load, max / mean", "clients, Jain"]


def ran(rounds):
    return [p for p in policies.POLICIES if any(p in r for r in rounds)]


def section(name, rounds):
    runs = [got for r in rounds for got in r.values() if "fail" not in got]
    parts = [f"**{name}**: {policies.WORKLOADS[name]}."]
    if runs:
        parts[0] += (
            f" {runs[0]['requests']} requests a run,"
            f" {statistics.median(g['seconds'] for g in runs):.0f} s; the"
            f" fleet took {max(g['cpu'] for g in runs):.0%} of the"
            " processors at most, and"
            f" {min(g['idle'] for g in runs):.0%} of them were idle at"
            " least.")
    parts[0] = textwrap.fill(parts[0], 80)
    return "\n\n".join(parts + [table(HEAD, [row(rounds, p)
                                             for p in ran(rounds)])])


def goal(results):
    """The one that must hold, in words; "" where it was not measured."""
    rounds = results["rounds"].get("turns", [])
    p99 = ratios(rounds, "weighted default", "p99")
    hits = ratios(rounds, "weighted default", "hits")
    if not p99 or not hits:
        return ""
    is_met = (statistics.median(p99) <= P99_LIMIT
              and statistics.median(hits) >= HITS_LEAST)
    return textwrap.fill(
        f"Goal, for conversations: `weighted default` has a p99 of the first"
        f" token of at most {P99_LIMIT} x round_robin's:"
        f" {span(summary(p99))}; and at least {HITS_LEAST} x its hits:"
        f" {span(summary(hits))}. {'Met' if is_met else 'MISSED'}.", 80)


def heading(results):
    m, o = results["machine"], results["options"]
    return textwrap.fill(
        f"{m['date']}, {m['cpu']}, {m['processors']} processors, Linux"
        f" {m['kernel']}, nginx {m['nginx']}, commit {m['commit']};"
        f" {o['rounds']} rounds, {o['beside']} workloads beside each other,"
        f" {results['seconds'] / 60:.0f} minutes; load average"
        f" {m['load']:.1f} at the start, {results['load_at_end']:.1f} at the"
        " end.", 80)


# --- plots

def bars(axes, results, key, scale):
    """Workloads side by side, in each a bar for each policy."""
    kinds = [p for p in policies.POLICIES if p != policies.AGAIN]
    names = list(results["rounds"])
    width = 0.8 / len(kinds)
    for i, policy in enumerate(kinds):
        points = [(at, summary([v * scale for v in of]))
                  for at, of in enumerate(
                      values(results["rounds"][n], policy, key)
                      for n in names) if of]
        axes.bar([at + (i - (len(kinds) - 1) / 2) * width
                  for at, _ in points], [v["median"] for _, v in points],
                 width, label=policy, yerr=[
                     [v["median"] - v["min"] for _, v in points],
                     [v["max"] - v["median"] for _, v in points]],
                 error_kw={"linewidth": 0.7})
    axes.set_xticks(range(len(names)), names)


def draw(results, directory):
    """The names of the plots that could be drawn."""
    made = []
    for key, scale, label, is_log in (
            ("hits", 100, "% of prompts' tokens found in caches", False),
            ("p50", 1, "first token, p50, ms", True),
            ("p99", 1, "first token, p99, ms", True)):
        name = f"policies-{key}.png"
        try:
            figure, axes = plots.figure((8, 3.4))
            bars(axes, results, key, scale)
            if is_log:
                axes.set_yscale("log")
                ticks = (50, 100, 200, 500, 1000, 2000, 5000)
                axes.set_yticks(ticks, map(str, ticks))
            axes.set_ylabel(label)
            axes.legend(fontsize="small", ncols=3, loc="lower center",
                        bbox_to_anchor=(0.5, 1))
            plots.save(figure, directory / name)
            made.append((label, name))
        except (ImportError, OSError, ValueError) as e:
            print(f"no {name}: {e} (python3-matplotlib; make bench-deps)",
                  file=sys.stderr)
    return made


# --- the page

def document(results, directory, writes):
    """The part of the page; writes: into the page, plots beside it."""
    directory = PICTURES if writes else directory
    parts = [heading(results), goal(results)]
    parts += [f"![{label}]({directory.name}/{name})"
              for label, name in draw(results, directory)]
    parts += [section(n, r) for n, r in results["rounds"].items()]
    text = "\n\n".join(filter(None, parts))
    if writes:
        page.write("policies", text, "policies.md")
    return text
