"""explain: the decision log, replayed through core's functions."""

import json
import subprocess

import pytest

from llmgw.sim.blis import SIM

POLICIES = {
    "round-robin": ("round-robin",),
    "least-loaded": ("least-loaded",),
    "all scorers": ("weighted", "--routing-scorers",
                    "prefix-affinity:3,precise-prefix-cache:2,no-hit-lru:1,"
                    "queue-depth:2,kv-utilization:1.5,load-balance:1,"
                    "active-requests:0.3,running-requests:1,load-aware:1,"
                    "lora-affinity:0.1"),
    "effective load": ("weighted", "--routing-scorers", "queue-depth:1,"
                       "load-balance:2", "--queue-depth-signal", "effective"),
}


@pytest.fixture
def log(blis, tmp_path):
    """log(policy words, ...): the log of a run, its path."""
    def make(policy, *more):
        path = tmp_path / "decisions.jsonl"
        subprocess.run(
            [SIM, "replay", "--trace-header", "w.yaml", "--trace-data",
             "w.csv", "--total-kv-blocks", "2000", "--num-instances", "5",
             "--decisions", path, "--routing-policy", *policy,
             *map(str, more)], cwd=blis.dir, check=True, capture_output=True)
        return path
    return make


def explain(path, *words):
    return subprocess.run([SIM, "explain", *map(str, words), path],
                          text=True, capture_output=True)


@pytest.mark.parametrize("name", ["all scorers", *(
    pytest.param(name, marks=pytest.mark.soak)
    for name in ("round-robin", "least-loaded", "effective load"))])
def test_core_makes_every_choice_again(log, name):
    run = explain(log(POLICIES[name]), "--json")
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert said["admitted"] == said["routed"] == said["replayed"] == 600
    assert said["different"] == said["not_replayed"] == 0
    assert said["regret"]["max"] == 0
    assert sum(said["targets"].values()) == 600
    shares = said["targets"].values()
    assert said["jain"] == pytest.approx(
        600 ** 2 / (len(shares) * sum(n * n for n in shares)))


def test_a_log_that_was_changed_is_found_out(log):
    path = log(POLICIES["least-loaded"])
    lines = path.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if '"request_99"' in line
              and '"route"' in line)
    entry = json.loads(lines[at])
    entry["chosen"] = (entry["chosen"] + 1) % 5
    lines[at] = json.dumps(entry)
    path.write_text("\n".join(lines) + "\n")

    run = explain(path)
    assert run.returncode == 1
    assert f"{path}:{at + 1}: request request_99: the log has" in run.stderr
    assert "replayed              600, 1 differ" in run.stdout


@pytest.mark.soak
def test_a_change_in_the_17th_digit_is_found_out(log):
    path = log(POLICIES["all scorers"])
    text = path.read_text()
    at = text.index('"rank":', text.index('"request_300"')) + 7
    end = text.index("}", at)
    digit = next(i for i in range(end - 1, at, -1) if text[i].isdigit())
    nudged = str((int(text[digit]) + 5) % 10)
    path.write_text(text[:digit] + nudged + text[digit + 1:])
    assert explain(path).returncode == 1


def test_another_policy_is_asked_what_it_would_have_done(log):
    path = log(POLICIES["round-robin"])
    said = json.loads(explain(path, "--json", "--as",
                              "least-loaded").stdout)
    assert said["as"]["replayed"] == 600
    assert 0 < said["as"]["different"] < 600
    assert said["as"]["regret"] == said["regret_by_load"]
    lacks = json.loads(explain(path, "--json", "--as",
                               "weighted:prefix-affinity:1").stdout)
    assert lacks["as"]["replayed"] == 0


@pytest.mark.soak
def test_refusals_are_counted_by_kind(log):
    path = log(POLICIES["least-loaded"], "--admission-policy",
               "token-bucket", "--token-bucket-capacity", 5000,
               "--token-bucket-refill-rate", 2000)
    said = json.loads(explain(path, "--json").stdout)
    assert said["rejections"] == {"insufficient tokens": said["rejected"]}
    assert said["rejected"] + said["admitted"] == 600
    assert said["routed"] == said["admitted"]


def test_a_sample_has_whole_requests_and_the_top_is_not_replayed(log):
    path = log(POLICIES["all scorers"], "--decisions-sample", 20,
               "--decisions-top", 2)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    routes = [e for e in entries if e["kind"] == "route"]
    assert 60 < len(routes) < 180
    assert [e["request"] for e in routes] == [
        e["request"] for e in entries if e["kind"] == "admission"]
    assert all(len(e["candidates"]) == 2 and e["of"] == 5
               and e["candidates"][0]["position"] == e["chosen"]
               for e in routes)
    said = json.loads(explain(path, "--json").stdout)
    assert said["not_replayed"] == said["routed"] == len(routes)


@pytest.mark.parametrize("text, said", [
    ("", None),
    ("{", "1: the line is no JSON object"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ('{"kind":"log","version":2}', "1: the log's version is not 1"),
        ('{"kind":"route"}', '1: this is no decision log: "route" comes first'),
        ('{"kind":"log","version":1}\n{"kind":"policy","pool":"","policy":"x"}',
         '2: there is no policy "x"'),
        ('{"kind":"log","version":1}\n{"kind":"nix","t_us":1,"request":"1"}',
         '2: "nix" is no kind of line'),
        ('{"kind":"log","version":1}\n{"kind":"route","t_us":1,"request":"1",'
         '"pool":"","blocks":1,"of":1,"chosen":0,"candidates":[]}',
         '2: no line before said the policy of pool ""'),
        ('{"kind":"log","version":1}\n{"kind":"route","t_us":1,"request":"1",'
         '"pool":"","blocks":-1,"of":1,"chosen":0,"candidates":[]}',
         '2: "blocks" is no number from 0 on'),
        ('{"kind":"log","version":1}\n{"kind":"policy","pool":"","policy":'
         '"weighted","scorers":[{"name":"queue-depth","weight":-1}]}', "2: "))),
])
def test_bad_lines_have_their_number(tmp_path, text, said):
    path = tmp_path / "log"
    path.write_text(text)
    run = explain(path)
    assert run.returncode == (0 if said is None else 2)
    if said:
        assert run.stderr.startswith(f"llmgw-sim: {path}:{said}")


HEAD = '{"kind":"log","version":1,"writer":"nginx","worker":%d}\n'
POLICY = '{"kind":"policy","pool":"llm","policy":"%s","worker":%d}\n'


def route(worker, request, chosen, loads=(2, 1), **more):
    """A line as nginx writes it: replicas that have so much in flight."""
    return json.dumps({
        "kind": "route", "t_us": 1, "request": request, "pool": "llm",
        "worker": worker, "blocks": 0, "of": len(loads), "turn": 0,
        "chosen": chosen, "candidates": [
            {"id": f"r{i}", "position": i, "in_flight": load, "queue": 0,
             "batch": 0, "kv": 0, "rank": (
                 -load if worker == 1 else -i), "age_ms": 3, "later": [i]}
            for i, load in enumerate(loads)], "new": {"in": "version 1"},
        **more}, separators=(",", ":")) + "\n"


def test_workers_write_into_one_file_each_by_its_policy(tmp_path):
    path = tmp_path / "log"
    path.write_text(
        HEAD % 1 + HEAD % 2 + POLICY % ("round-robin", 2)
        + POLICY % ("least-loaded", 1) + route(1, "a", 1) + route(2, "b", 0)
        + HEAD % 2 + POLICY % ("round-robin", 2) + route(2, "c", 0)
        + route(3, "lost its policy", 0)
        + route(1, "waits", 0).replace('"chosen":0', '"outcome":"waits"')
        + route(1, "a suspect", 0).replace('"chosen":0', '"replica":"r9"'))
    run = explain(path, "--json")
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert (said["replayed"], said["not_replayed"]) == (3, 2)
    assert said["targets"] == {"r0": 3, "r1": 1, "r9": 1}
    assert (said["without_replica"], said["outcomes"]) == (1, {"waits": 1})


def by_pick(request, chosen, *replicas):
    """A choice of worker 1 that no rank decided."""
    line = json.loads(route(1, request, chosen, [0] * len(replicas)))
    for i, (one, more) in enumerate(zip(line["candidates"], replicas)):
        one |= {"foreign": 0, "weight": 1, "state": "alive",
                "rank": int(i == chosen)} | more
    return json.dumps(line | {"random": "00000000000000ab"}) + "\n"


def suspect(load):
    return {"state": "suspect", "in_flight": load}


def refuses(retry_ms):
    return {"circuit": "open", "retry_ms": retry_ms, "failed": "circuit"}


def test_choices_that_no_rank_decided_are_those_of_the_pick(tmp_path):
    path = tmp_path / "log"
    tried = {"failed": "excluded"}
    path.write_text(
        HEAD % 1 + POLICY % ("least-loaded", 1)
        + by_pick("a suspect", 2, refuses(9), suspect(2), suspect(1))
        + by_pick("forced", 1, refuses(9), refuses(8), tried)
        + by_pick("forced, is probed", 2, refuses(9), refuses(8), refuses(0))
        + by_pick("forced by chance", 0, refuses(9), {
            "circuit": "open", "failed": "circuit"})
        + by_pick("too much there", 1, refuses(9), suspect(2), suspect(1))
        + by_pick("the later one", 0, refuses(9), refuses(8))
        + by_pick("not forced", 0, {"circuit": "open", "retry_ms": 9}))
    run = explain(path, "--json")
    said = json.loads(run.stdout)
    assert (said["replayed"], said["not_replayed"]) == (6, 1)
    assert [line.split(":")[1] for line in run.stderr.splitlines()] \
        == ["7", "8", "9"]


def test_pieces_of_lines_are_said_and_the_rest_is_explained(tmp_path):
    path = tmp_path / "log"
    whole = route(1, "x", 1)
    lines = [
        '{"kind":"log","ver' + HEAD % 1,        # another one's beginning
        POLICY % ("least-loaded", 1),
        whole[:-9] + "\n", "\n", whole[:70] + whole, "\0\0\0" + whole,
        whole[:30] + whole[:40] + whole, whole, "}\n", whole[:-9]]
    path.write_text("".join(lines))
    run = explain(path, "--json")
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert (said["replayed"], said["different"]) == (4, 0)
    broken = [int(line.split(":")[1]) for line in run.stderr.splitlines()]
    assert broken == [1, 3, 5, 6, 7, 9, 10]
    assert said["unreadable"] == len(broken)
    assert f"{path}:3: the line is cut off" in run.stderr
    assert "unreadable lines      7" in explain(path).stdout


@pytest.mark.parametrize("more, said", [
    ({"chosen": 2}, '"chosen" is beyond the candidates'),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ({"sums": 3}, '"load" is no number'),
        ({"key": "12"}, '"key" has not 16 hexadecimal digits'),
        ({"worker": -1}, '"worker" is no number from 0 on'),
        ({"outcome": 5}, '"outcome" is no string'))),
])
def test_bad_members_of_live_lines_have_their_number(tmp_path, more, said):
    path = tmp_path / "log"
    path.write_text(HEAD % 1 + POLICY % ("least-loaded", 1)
                    + json.dumps(json.loads(route(1, "x", 1)) | more))
    run = explain(path)
    assert run.returncode == 2
    assert f"{path}:3: {said}" in run.stderr


@pytest.mark.soak
def test_a_file_that_is_not_there_is_said(tmp_path):
    assert explain(tmp_path / "nix").returncode == 2
    assert subprocess.run([SIM, "explain"], text=True,
                          capture_output=True).returncode == 2
