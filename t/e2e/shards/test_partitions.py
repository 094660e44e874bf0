"""Wherever a model is cut, what is computed is the same to the last bit: the
hidden states between the layers, and the logits."""

import os
import re
import subprocess

import pytest

from llmgw.model import gguf, llama
from llmgw.model.llama import Call, chat, request
from llmgw.proc import place
from llmgw.proc.seed import rng
from llmgw.shards.replica import LOGITS, Shards

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

LAYERS, TOKENS = 16, 24
# All that llmgw-slice cuts, but llama, which all other tests have.
ARCHITECTURES = "qwen2", "qwen3", "qwen3moe"
# Covers with overlaps, drawn at random; make soak has more.
COVERS = int(os.environ.get("LLMGW_SHARD_COVERS", 1))

# One is shorter than a chunk, one takes several, one is drawn.
BODIES = [chat("so", temperature=0, ignore_eos=True),
          chat("la me ki " * 30, temperature=0, ignore_eos=True),
          chat("pa ne " * 12, temperature=.8, seed=5, ignore_eos=True)]


@pytest.fixture(scope="module")
def whole(shared):
    """The slices, what one process says, and its rows."""
    s = Shards(shared, layers=LAYERS, hashed=True)
    return s, answers(s.single()), s.rows("single")


def answers(replica):
    """Of all bodies, asked at the same time."""
    calls = [Call(replica, request({**b, "max_tokens": TOKENS}))
             for b in BODIES]
    return [c.end().whole().says() for c in calls]


def served(cluster, slices, parts):
    """The same by shards; (answers, rows)."""
    s = Shards(cluster, file=slices.model, hashed=True)
    ids = [shard.id for shard in s.shards(*parts)]
    return answers(s.orchestrator()), s.rows(*ids)


def same(whole, sharded, cuts):
    _, said, right = whole
    assert sharded[0] == said
    found = {row for row in sharded[1] if row[0] != 0}
    assert {layer for layer, *_ in found} == {*cuts, LOGITS}
    assert len({row for row in found if row[0] == LOGITS}) == \
        len(BODIES) * TOKENS
    # All of them, and no other one.
    assert found == {row for row in right if row[0] in (*cuts, LOGITS)}


@pytest.mark.first
@pytest.mark.parametrize("n", [4, *(pytest.param(n, marks=pytest.mark.soak)
                                    for n in (1, 2, 8, 16))])
def test_a_partition_computes_the_bits_of_one_process(cluster, whole, n):
    size = LAYERS // n
    parts = [f"{i}-{i + size - 1}" for i in range(0, LAYERS, size)]
    same(whole, served(cluster, whole[0], parts), set(range(size, LAYERS,
                                                            size)))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_architecture_computes_the_bits_of_one_process(cluster,
                                                            architecture):
    s = Shards(cluster, layers=4, architecture=architecture, hashed=True)
    whole = s, answers(s.single()), s.rows("single")
    same(whole, served(cluster, s, ["0-0", "1-3"]), {1})


def test_each_architecture_that_can_be_cut_is_tested(tmp_path):
    gguf.write(tmp_path / "m.gguf", architecture="gemma")
    done = subprocess.run(
        [place.binary("llmgw-slice"), tmp_path / "m.gguf", "--out", tmp_path,
         "--shards", "2"], capture_output=True, text=True, timeout=60)
    named = re.search("; (.*) can$", done.stderr)[1]
    docs = (place.ROOT / "docs/shards.md").read_text().replace("\n", " ")
    assert re.split(", | and ", named) == ["llama", *ARCHITECTURES]
    assert f"the architectures {named}." in docs


def cover(draw):
    """(parts, cuts): slices that overlap at random; each is needed, since no
    two others meet without it."""
    starts = sorted(draw.sample(range(1, LAYERS), draw.randint(1, 3)))
    ends = [draw.randint(a - 1, b - 2)      # before the one after the next
            for a, b in zip(starts, [*starts[1:], LAYERS])]
    parts = [f"{a}-{b}" for a, b in zip([0, *starts], [*ends, LAYERS - 1])]
    return parts, set(starts)


@pytest.mark.soak
@pytest.mark.parametrize("i", range(COVERS))
def test_slices_that_overlap_compute_the_same(cluster, whole, i):
    parts, cuts = cover(rng(f"cover {i}"))
    same(whole, served(cluster, whole[0], parts), cuts)
