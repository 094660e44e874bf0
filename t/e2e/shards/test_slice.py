"""llmgw-slice: a model in files with some of its layers each."""

import hashlib
import os
import re
import resource
import signal
import subprocess

import pytest

from llmgw.model import gguf, llama
from llmgw.model.gguf_read import Gguf, flip
from llmgw.proc import place
from llmgw.proc.preload import compiled
from llmgw.proc.wait import wait_for

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

LAYERS = 6
IN_EACH = {"output_norm.weight"}
EMBED, OUTPUT = "token_embd.weight", "output.weight"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    gguf.write(path, layers=LAYERS)
    return path


@pytest.fixture(scope="module")
def preload(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preload")
    return lambda name: compiled(name, folder)


def slicer(*words, **more):
    return subprocess.run([place.binary("llmgw-slice"), *map(str, words)],
                          text=True, capture_output=True, timeout=60, **more)


def cut(model, out, *words):
    """{part: Gguf}, part as "0-2" or "head"."""
    done = slicer(model, "--out", out, *words)
    assert done.returncode == 0, done.stderr
    return {path.name.split(".")[1]: Gguf(path) for path in out.iterdir()}


def check(path):
    return slicer("--check", path)


def whole_name(name, file):
    """What a tensor of a slice is called in the model; None: of it is none."""
    first, layers = file.facts["llmgw.first_layer"], file.facts["llmgw.layers"]
    if name == EMBED:
        has_output = file.facts["llmgw.last_layer"] == layers - 1
        return OUTPUT if has_output else None
    return re.sub(r"^blk\.(\d+)", lambda m: f"blk.{int(m[1]) + first}", name)


def holders(whole, parts):
    """{tensor of the model: parts that have it}, their bytes compared."""
    held = {name: [] for name in whole.tensors}
    for part, file in parts.items():
        for name, tensor in file.tensors.items():
            if part != "head":
                name = whole_name(name, file)
            if name:
                held[name].append(part)
                assert tensor == whole.tensors[name], (part, name)
    return held


def test_slices_together_hold_each_tensor_once(model, tmp_path):
    whole = Gguf(model)
    parts = cut(model, tmp_path, "--cuts", "1,4", "--head")
    assert set(parts) == {"head", "0-0", "1-3", "4-5"}

    held = holders(whole, parts)
    for name, by in held.items():
        assert len(by) == (3 if name in IN_EACH else 1), (name, by)
    assert held[EMBED] == ["head"] and held[OUTPUT] == ["4-5"]
    assert set(parts["head"].tensors) == {EMBED}


@pytest.mark.soak
def test_a_slice_has_no_vocabulary_and_the_head_has_all_of_it(model,
                                                              tmp_path):
    whole = Gguf(model)
    parts = cut(model, tmp_path, "--shards", 2, "--head")
    words = {k: v for k, v in whole.facts.items() if k.startswith("tokenizer")}

    for key, value in words.items():
        assert parts["head"].facts[key] == value
    for part in "0-2", "3-5":
        assert {k for k in parts[part].facts if k.startswith("tokenizer")} \
            == {"tokenizer.ggml.model"}
        assert parts[part].facts["llama.block_count"] == 3
    tokens = whole.facts["llama.vocab_size"]
    assert parts["0-2"].facts["llama.vocab_size"] == 1
    assert parts["3-5"].facts["llama.vocab_size"] == tokens
    assert all(p.facts["llmgw.vocabulary"] == tokens for p in parts.values())


@pytest.mark.soak
def test_a_model_without_an_output_matrix_gives_it_to_head_and_last(tmp_path):
    gguf.write(tmp_path / "tied.gguf", layers=2, is_tied=True)
    (tmp_path / "out").mkdir()
    parts = cut(tmp_path / "tied.gguf", tmp_path / "out", "--shards", 2,
                "--head")
    embed = Gguf(tmp_path / "tied.gguf").tensors[EMBED]

    assert parts["head"].tensors[EMBED] == embed
    assert parts["1-1"].tensors[EMBED] == embed
    assert parts["0-0"].tensors[EMBED].shape == (embed.shape[0],)
    for part in "head", "0-0", "1-1":
        done = check(tmp_path / f"out/tied.{part}.gguf")
        assert done.returncode == 0, done.stderr


def test_weights_id_is_the_manifests_and_of_no_cut(model, tmp_path):
    ids = set()
    for i, words in enumerate((("--shards", 3), ("--layers", "0-3,2-5,5"),
                               ("--head", "--no-norms"))):
        (tmp_path / str(i)).mkdir()
        for file in cut(model, tmp_path / str(i), *words).values():
            text = file.facts["llmgw.manifest"]
            ids.add(file.facts["llmgw.weights_id"])
            assert hashlib.sha256(text.encode()).hexdigest() in ids
    assert len(ids) == 1
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines()}
    whole = Gguf(model)
    assert set(lines) == {"settings", *whole.tensors}
    for name, tensor in whole.tensors.items():
        kind = {0: "f32", 8: "q8_0"}[tensor.kind]
        assert lines[name] == [kind, "x".join(map(str, tensor.shape)),
                               hashlib.sha256(tensor.bytes).hexdigest()]


@pytest.mark.soak
def test_a_model_in_parts_has_the_same_slices(model, tmp_path):
    paths = gguf.write_parts(tmp_path, 3, layers=LAYERS)
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    one = cut(model, tmp_path / "a", "--shards", 2, "--head")
    other = cut(paths[0], tmp_path / "b", "--shards", 2, "--head")
    assert [one[p].data for p in sorted(one)] \
        == [other[p].data for p in sorted(other)]


@pytest.mark.soak
def test_other_settings_are_other_weights(model, tmp_path):
    gguf.write(tmp_path / "tiny.gguf", layers=LAYERS,
               facts={"llama.rope.freq_base": 50000.0})
    ids = []
    for i, path in enumerate((model, tmp_path / "tiny.gguf")):
        (tmp_path / str(i)).mkdir()
        head = cut(path, tmp_path / str(i), "--head", "--no-norms")["head"]
        ids.append(head.facts["llmgw.weights_id"])
    assert ids[0] != ids[1]


@pytest.mark.soak
def test_norms_are_of_each_boundary(model, tmp_path):
    norms = cut(model, tmp_path, "--shards", 2)["0-2"].facts["llmgw.norms"]
    assert len(norms) == LAYERS + 1 and all(0 < n < 1e6 for n in norms)
    # Each layer adds to the residual, so the last is the greatest here.
    assert norms[LAYERS] > norms[1]
    (tmp_path / "without").mkdir()
    assert "llmgw.norms" not in cut(model, tmp_path / "without", "--shards", 1,
                                    "--no-norms")["0-5"].facts


def test_a_flipped_bit_is_named(model, tmp_path):
    file = cut(model, tmp_path, "--layers", "2-4")["2-4"]
    path = tmp_path / "tiny.2-4.gguf"
    for name in ("blk.0.attn_q.weight", "blk.2.ffn_down.weight",
                 "output_norm.weight"):
        tensor = file.tensors[name]
        for at in tensor.at, tensor.at + tensor.n - 1:
            flip(path, at, bit=at % 8)
            done = check(path)
            assert done.returncode == 1
            assert f'tensor "{name}"' in done.stderr, done.stderr
            flip(path, at, bit=at % 8)
    done = check(path)
    assert done.returncode == 0 and "layers 2-4 of tiny-random" in done.stdout


def test_a_file_that_is_not_what_it_says_is_refused(model, tmp_path):
    cut(model, tmp_path, "--layers", "2-4", "--head")
    path, head = tmp_path / "tiny.2-4.gguf", tmp_path / "tiny.head.gguf"
    right = path.read_bytes()

    def says(data):
        path.write_bytes(data)
        done = check(path)
        assert done.returncode == 1
        return done.stderr

    def with_fact(key, value):
        at = right.index(key.encode()) + len(key) + 4
        return right[:at] + value + right[at + len(value):]

    assert "is cut off" in says(right[:-64])
    assert "is damaged" in says(right[:3000])
    assert "not a GGUF file" in says(b"GGML" + right[4:])
    assert "not the one that its weights id is of" in says(
        right.replace(b"blk.3.attn_k.weight q8_0", b"blk.3.attn_k.weight q4_0"))
    assert "has no tensor" in says(
        with_fact("llmgw.last_layer", b"\x05\0\0\0"))
    assert "are damaged" in says(with_fact("llmgw.last_layer", b"\x06\0\0\0"))
    assert "settings" in says(
        with_fact("llama.attention.layer_norm_rms_epsilon", b"\0\0\0\x3f"))
    for other in model, tmp_path / "none":
        assert check(other).returncode == 1
    assert "was not made by llmgw-slice" in check(model).stderr
    assert "head of tiny-random" in check(head).stdout


@pytest.mark.parametrize("options, words", [
    ({"architecture": "gemma"}, 'architecture "gemma" cannot be cut'),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ({"facts": {"llama.attention.head_count_kv": (4, [2] * LAYERS)}},
         '"llama.attention.head_count_kv" has a value for each layer'),
        ({"facts": {"llama.block_count": LAYERS + 1}}, "layer 6 of"),
        ({"facts": {"llama.block_count": LAYERS - 1}}, "where tensor"))),
])
def test_a_model_that_cannot_be_cut_is_refused(options, words, tmp_path):
    gguf.write(tmp_path / "m.gguf", layers=LAYERS, **options)
    done = slicer(tmp_path / "m.gguf", "--out", tmp_path / "out",
                  "--shards", 2)
    assert done.returncode == 1 and words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.soak
def test_a_slice_is_not_cut_again(model, tmp_path):
    cut(model, tmp_path, "--shards", 2)
    done = slicer(tmp_path / "tiny.0-2.gguf", "--out", tmp_path, "--shards",
                  1)
    assert done.returncode == 1 and "is a slice already" in done.stderr
    cut(model, tmp_path, "--head")
    done = slicer(tmp_path / "tiny.head.gguf", "--out", tmp_path, "--head")
    assert done.returncode == 1 and "is a head already" in done.stderr


@pytest.mark.parametrize("part", [
    "0-2", pytest.param("head", marks=pytest.mark.soak)])
def test_a_part_is_no_model_to_serve(model, tmp_path, ports, part):
    cut(model, tmp_path, "--shards", 2, "--head")
    done = subprocess.run(
        [place.binary("llmgw-replica"), "--id", "r", "--engine", "llama",
         "--listen", f"127.0.0.1:{ports.take()}",
         "--model", tmp_path / f"tiny.{part}.gguf"],
        text=True, capture_output=True, timeout=60)
    assert done.returncode == 1 and "not a whole model" in done.stderr


@pytest.mark.soak
def test_ranges_at_the_edge_and_beyond(model, tmp_path):
    for words in (("--shards", LAYERS), ("--shards", 1), ("--cuts", "1,5"),
                  ("--layers", "0,5,0-5")):
        assert slicer(model, "--out", tmp_path, "--no-norms",
                      *words).returncode == 0
    for words in (("--shards", LAYERS + 1), ("--cuts", "0"), ("--cuts", "6"),
                  ("--cuts", "3,3"), ("--cuts", "3,"), ("--layers", "0-6"),
                  ("--layers", "4-3"), ("--layers", "-3"),
                  ("--layers", "0-"), ("--layers", "a")):
        done = slicer(model, "--out", tmp_path, *words)
        assert done.returncode == 1 and "right" in done.stderr, words
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [
    (), ("--out", "DIR", "--shards", 2, "--cuts", 1),
    *(pytest.param(case, marks=pytest.mark.soak) for case in (
        ("--out", "DIR"), ("--shards", 2), ("--check", "--out", "DIR"),
        ("--check", "--head"), ("--out", "DIR", "--shards", 0)))])
def test_a_wrong_command_line_is_one_line(words, model, tmp_path):
    done = slicer(model, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and not done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.soak
@pytest.mark.parametrize("layers, gaps", [
    ("0-3,5", "layer 4 is in no slice"), ("2,4", "layers 0-1,3,5 are in no"),
    ("0-3,2-5", None), ("2-3", None)])
def test_layers_that_no_slice_has_are_named(model, tmp_path, layers, gaps):
    done = slicer(model, "--out", tmp_path, "--no-norms", "--layers", layers)
    assert done.returncode == 0
    assert gaps in done.stderr if gaps else not done.stderr


@pytest.mark.soak
def test_a_folder_that_takes_no_file_is_told_first(model):
    """Not when the first file is begun: then the whole model was read."""
    done = slicer(model, "--out", "/proc", "--shards", 2)
    assert done.returncode == 1 and not done.stdout
    assert 'cannot write to "/proc": ' in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_run_that_is_killed_leaves_no_half_file(model, tmp_path, preload):
    env = {**os.environ, "LD_PRELOAD": preload("killed_at"),
           "KILLED_AT": "fsync"}
    done = slicer(model, "--out", tmp_path, "--shards", 2, env=env)
    assert done.returncode == -signal.SIGKILL
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.0-2.gguf.tmp"]
    # What is left does not disturb the next run.
    assert set(cut(model, tmp_path, "--shards", 2)) == {"0-2", "3-5"}
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.soak
def test_a_run_that_is_stopped_takes_its_half_file_away(model, tmp_path,
                                                        preload):
    gate, half = tmp_path / "gate", tmp_path / "out/tiny.0-2.gguf.tmp"
    gate.touch()
    run = subprocess.Popen(
        [place.binary("llmgw-slice"), model, "--out", tmp_path / "out",
         "--shards", "2"], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "LD_PRELOAD": preload("slow_sync"),
             "SLOW_SYNC": str(gate)})
    wait_for(lambda: half.exists() and half.stat().st_size > 0,
             "the first file to be written")
    other = slicer(model, "--out", tmp_path / "out", "--shards", 2)
    assert "is being written by another run" in other.stderr
    run.terminate()
    gate.unlink()
    assert "interrupted" in run.communicate(timeout=20)[1]
    assert run.returncode == 1
    left = [p.name for p in (tmp_path / "out").iterdir()]
    assert set(left) <= {"tiny.0-2.gguf"}
    for name in left:
        assert check(tmp_path / "out" / name).returncode == 0


def test_a_full_disk_is_told_and_leaves_nothing(model, tmp_path):
    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    done = slicer(model, "--out", tmp_path, "--shards", 2, preexec_fn=full)
    assert done.returncode == 1
    assert "cannot write" in done.stderr and "too large" in done.stderr
    assert not list(tmp_path.iterdir())
