"""The tables of docs/benchmarks.md."""

import textwrap

from . import goals, paired
from .goals import span


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


def number(value, form="{:.2f}"):
    return "-" if value is None else form.format(value)


def both(pair):
    return "-" if pair[0] is None else f"{pair[0]:.2f}, {pair[1]:.2f}"


def heading(results):
    m, o = results["machine"], results["options"]
    text = (f"{m['date']}, {m['cpu']}, {m['processors']} processors, Linux"
            f" {m['kernel']}, load average {m['load']:.1f} at the start and"
            f" {results['load_at_end']:.1f} at the end; commit"
            f" {m['commit']}, nginx {m['nginx']}, {m['haproxy']}, Caddy"
            f" {m['caddy']}. `{o['command']}`: {o['rounds']} rounds of"
            f" {o['window_ms']} ms each, behind {o['warmup_ms']} ms of"
            f" warming up; {results['seconds']:.0f} s in all.")
    return textwrap.fill(text, 80)


def goals_table(results):
    return table(["#", "what", "goal", "measured", ""],
                 goals.judge(results))


def compared(results):
    """One table per scenario."""
    parts = []
    for name, got in results.get("paired", {}).items():
        if "fail" in got:
            parts.append(f"**{name}**: FAIL: {got['fail']}")
            continue
        rows = []
        for peer, row in got["rows"].items():
            if "fail" in row:
                rows.append([peer, f"FAIL: {row['fail']}"] + [""] * 6)
                continue
            rows.append([
                peer, span(row["value"]),
                span(row["ratio"]) if "ratio" in row else "1",
                number(row["tokens_per_second"], "{:.0f}"),
                number(row["cpu"], "{:.0%}"), both(row["first_token_ms"]),
                both(row["lag_ms"]), number(row["client_us_per_token"])])
        parts.append(
            f"**{name}**: {got['title']}. {got['pinning']}.\n\n" + table(
                ["", got["unit"], f"x {got['base']}", "tokens/s", "CPU",
                 "first token ms, p50 p99", "lag ms, p50 p99",
                 "client us/token"], rows))
    return "\n\n".join(parts)


def simple(results, part, columns):
    """columns: (head, key, form); one row per entry."""
    rows = []
    for name, row in results.get(part, {}).items():
        if "fail" in row:
            rows.append([name, f"FAIL: {row['fail']}"]
                        + [""] * (len(columns) - 1))
        else:
            rows.append([name] + [number(row.get(key), form)
                                  for _, key, form in columns])
    return table([""] + [head for head, _, _ in columns], rows) \
        if rows else "FAIL: not measured"


def micro(results):
    got = results.get("micro", {})
    if not got.get("ring") and not got.get("ns"):
        return "FAIL: not measured"
    text = table(
        ["replicas", "ring build ms", "longest slice us",
         "one changes, ms", "longest slice us", "find ns", "pick",
         "with breakers", "load bound", "all full", "all open"],
        [[n, *row.values()] for n, row in got["ring"].items()])
    text += (f"\n\nOf find, pick and what is right of them"
             f" {got['loop_ns']:.1f} ns are the loop that measures.")
    text += "\n\n" + table(["", "ns"], list(got["ns"].items()))
    for name, why in got["fail"].items():
        text += f"\n\n{name}: FAIL: {why}"
    return text


SECTIONS = [
    ("Memory of streams that are held", "memory", [
        ("kB a stream", "kb_per_stream", "{:.1f}"),
        ("kB before them", "idle_kb", "{}"),
        ("s held", "seconds", "{}"),
        ("kB more in the last third", "growth_kb", "{}"),
        ("upstream sockets", "sockets", "{}"), ("failed", "failed", "{}")]),
    ("System calls", "syscalls", [("a token", "per_token", "{:.2f}"),
                                  ("counted by", "tool", "{}")]),
    ("Instructions beside the kernel's, one stream at a time",
     "instructions", [("a request", "request", "{:.0f}"),
                      ("a token", "token", "{:.0f}")]),
    ("kill -9 of one of two replicas under 200 streams", "failover", [
        ("lost", "lost", "{}"), ("moved", "moved", "{}"),
        ("doubled or wrong", "doubled_or_wrong", "{}"),
        ("gap p50 ms", "gap_p50_ms", "{:.1f}"),
        ("gap max ms", "gap_max_ms", "{:.1f}"),
        ("beyond 2 x 20 ms, max", "beyond_max_ms", "{:.1f}"),
        ("runs", "runs", "{}")]),
    ("Hedging: one of 33 replicas starts after 200 ms, the others after 5",
     "hedging", [
         ("first token p50 ms", "p50_ms", "{:.1f}"),
         ("p99 ms", "p99_ms", "{:.1f}"),
         ("starts at the slow one", "slow_share", "{:.1%}"),
         ("more requests", "extra_share", "{:.1%}"),
         ("requests", "requests", "{}")]),
    ("Overload: room for 200 streams a second, a queue of 10", "overload", [
        ("end to end p50 ms", "p50_ms", "{:.0f}"),
        ("p99 ms", "p99_ms", "{:.0f}"),
        ("served a second", "served_per_second", "{:.0f}"),
        ("refused", "refused", "{}")]),
    ("A client with 100 streams that it does not read", "stalled", [
        ("p99 lag x without", "ratio", "{:.2f}"),
        ("least", "ratio_min", "{:.2f}"), ("greatest", "ratio_max", "{:.2f}"),
        ("p99 ms without", "p99_without_ms", "{:.2f}"),
        ("with", "p99_with_ms", "{:.2f}"), ("kB more", "growth_kb", "{}")]),
    ("An iteration of the event loop under 20 streams of OpenAI's API",
     "openai_stall", [
         ("p99 ms", "p99_ms", "{:.2f}"), ("longest", "max_ms", "{:.2f}"),
         ("iterations", "iterations", "{}"),
         ("requests of 400 kB", "large", "{}"),
         ("gap between tokens, p99 ms", "gap_p99_ms", "{:.1f}"),
         ("longest", "gap_max_ms", "{:.1f}")]),
    ("Pool of many replicas, two behind all addresses: CPU of a request",
     "scale", [("us", "us_per_request", "{:.1f}")]),
    ("A member changes every 100 ms: p99 lag of tokens", "churn", [
        ("x while none does", "ratio", "{:.2f}"),
        ("least", "ratio_min", "{:.2f}"), ("greatest", "ratio_max", "{:.2f}"),
        ("ms while none does", "still_p99_ms", "{:.2f}"),
        ("ms", "moving_p99_ms", "{:.2f}")]),
]


def streams(results):
    rows = []
    for n in paired.STREAMS:
        got = results.get("streams", {}).get(str(n), {"fail": "not measured"})
        if "fail" in got:
            rows.append([n, f"FAIL: {got['fail']}", "", "", ""])
            continue
        rows.append([n] + [
            span(row["value"]) if "value" in row else f"FAIL: {row['fail']}"
            for row in (got["rows"].get(name, {"fail": "not measured"})
                        for name in ("nginx", "haproxy", "floor", "llmgw"))])
    return table(["streams", "nginx", "haproxy", "floor", "llmgw"], rows)


def document(results, pictures):
    """Of the parts that ran; pictures: {part: path beside the document}."""
    parts = [heading(results), "### Goals", goals_table(results)]
    if results.get("paired"):
        parts += ["### Beside other proxies", compared(results)]
    if results.get("streams"):
        parts += ["### CPU a token, by the number of streams (us)",
                  streams(results)]
    if "streams" in pictures:
        parts.append(f"![CPU a token]({pictures['streams']})")
    for title, part, columns in SECTIONS:
        if part in results:
            parts += [f"### {title}", simple(results, part, columns)]
        if part in pictures:
            parts.append(f"![{title}]({pictures[part]})")
    if "micro" in results:
        parts += ["### Parts by themselves", micro(results)]
    return "\n\n".join(parts)
