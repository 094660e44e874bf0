"""Writes a small random model as a GGUF file: the engine `llama` loads it in
milliseconds.  The same arguments always give the same bytes.

The weights are random, so it talks nonsense, but as a model does: what comes
next depends on all that was before, and the most likely token is seldom far
ahead.  Its vocabulary is a small SentencePiece one: the 256 bytes, printable
characters, syllables, two control tokens of the chat template.

Two characters, in SPELLED, are not in the vocabulary.  The model spells them
byte by byte: after a first byte the output's row of the next is the embedding
of the one before, so that no other has a chance.  A test of whole characters
needs them, since random bytes are hardly ever UTF-8.
"""

import collections
import itertools
import math
import random
import struct

SPELLED = "☂🜁"
TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n'"
    " + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")

EMBED, HEADS, HEADS_KV, FFN = 128, 4, 2, 256
EXPERTS = 4
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6     # types of tokens
FIRST_BYTE = 3                                  # id of <0x00>
BLOCK = 32                                      # weights in one of Q8_0
Typed = collections.namedtuple("Typed", "type format number")
F32, Q8_0 = 0, 8
TYPES = {"f32": F32, "q8_0": Q8_0}


def vocabulary(more=0):
    """[(text, type)], ordered by id; more: number of further ones, which
    take time to load."""
    tokens = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    tokens += [(f"<0x{i:02X}>", BYTE) for i in range(256)]
    tokens += [("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL)]
    tokens += [(chr(i), NORMAL) for i in range(0x21, 0x7F)]
    tokens += [(c, NORMAL) for c in "▁äéßñ→€日本語😀"]
    syllables = ["".join(s) for s in itertools.product("bdfgklmnprstvz",
                                                       "aeiou")]
    tokens += [(s, NORMAL) for s in syllables]
    tokens += [("▁" + s, NORMAL) for s in syllables]
    tokens += [(f"<more-{i}>", NORMAL) for i in range(more)]
    return tokens


class Weights:
    """Rows of random weights as bytes: uniform, of a given deviation."""

    def __init__(self, seed, kind):
        self.random = random.Random(seed)
        self.kind = TYPES[kind]

    def row(self, n, deviation):
        return self.random.randbytes(n), deviation

    def matrix(self, n, rows, deviation=None):
        """n inputs; by default what keeps the deviation of its input."""
        return b"".join(self.pack(self.row(n, deviation or n ** -0.5))
                        for _ in range(rows))

    def pack(self, row):
        quants, deviation = row
        scale = deviation / 73.9        # the deviation of a random int8
        if self.kind == F32:
            ints = struct.unpack(f"{len(quants)}b", quants)
            return struct.pack(f"<{len(ints)}f", *(scale * i for i in ints))
        head = struct.pack("<e", scale)
        return b"".join(head + quants[i:i + BLOCK]
                        for i in range(0, len(quants), BLOCK))


def _embeddings(weights, tokens, width):
    """The tensors token_embd and output."""
    embed = [weights.row(width, 1.0) for _ in tokens]
    output = [weights.row(width, 0.01 if kind == BYTE else 0.25)
              for _, kind in tokens]
    for char in SPELLED:
        spelled = [FIRST_BYTE + b for b in char.encode()]
        output[spelled[0]] = (output[spelled[0]][0], 0.3)
        for before, after in itertools.pairwise(spelled):
            embed[before] = (embed[before][0], 8.0)
            output[after] = (embed[before][0], 0.25)
    return (b"".join(map(weights.pack, embed)),
            b"".join(map(weights.pack, output)))


def _layer(architecture, width, ffn, head):
    """Names of a layer's tensors -> dimensions; those of one dimension are
    norms, and biases."""
    q, kv = head * HEADS, head * HEADS_KV
    shapes = {"attn_norm.weight": (width,), "ffn_norm.weight": (width,),
              "attn_q.weight": (width, q), "attn_k.weight": (width, kv),
              "attn_v.weight": (width, kv),
              "attn_output.weight": (q, width)}
    if architecture.startswith("qwen2"):
        shapes |= {"attn_q.bias": (q,), "attn_k.bias": (kv,),
                   "attn_v.bias": (kv,)}
    if architecture.startswith("qwen3"):
        shapes |= {"attn_q_norm.weight": (head,),
                   "attn_k_norm.weight": (head,)}
    if not architecture.endswith("moe"):
        return shapes | {"ffn_gate.weight": (width, ffn),
                         "ffn_up.weight": (width, ffn),
                         "ffn_down.weight": (ffn, width)}
    shapes |= {"ffn_gate_inp.weight": (width, EXPERTS),
               "ffn_gate_exps.weight": (width, ffn, EXPERTS),
               "ffn_up_exps.weight": (width, ffn, EXPERTS),
               "ffn_down_exps.weight": (ffn, width, EXPERTS)}
    if architecture == "qwen2moe":
        shapes |= {"ffn_gate_inp_shexp.weight": (width,),
                   "ffn_gate_shexp.weight": (width, ffn),
                   "ffn_up_shexp.weight": (width, ffn),
                   "ffn_down_shexp.weight": (ffn, width)}
    return shapes


def _tensors(weights, tokens, layers, architecture, width, head, is_tied):
    """[(name, dimensions, type, bytes)]"""
    def floats(n, value):
        return struct.pack(f"<{n}f", *[value] * n)

    shapes = _layer(architecture, width, FFN * width // EMBED, head)
    embed, output = _embeddings(weights, tokens, width)
    table = (width, len(tokens))
    yield "token_embd.weight", table, weights.kind, embed
    for i in range(layers):
        for name, shape in shapes.items():
            if len(shape) == 1:
                value = 1.0 if name.endswith("norm.weight") else 0.01
                yield f"blk.{i}.{name}", shape, F32, floats(shape[0], value)
                continue
            rows = math.prod(shape[1:])
            spread = 0.15 if name == "attn_k.weight" else None
            yield (f"blk.{i}.{name}", shape, weights.kind,
                   weights.matrix(shape[0], rows, spread))
    yield "output_norm.weight", (width,), F32, floats(width, 1.0)
    if not is_tied:
        yield "output.weight", table, weights.kind, output


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value):
    """A value with its type in front."""
    if isinstance(value, Typed):
        return struct.pack("<I" + value.format, value.type, value.number)
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    kind, items = value
    if kind == 8:
        packed = b"".join(map(_string, items))
    else:
        packed = struct.pack(f"<{len(items)}{'f' if kind == 6 else 'i'}",
                             *items)
    return struct.pack("<IIQ", 9, kind, len(items)) + packed


def _metadata(tokens, layers, context, template, name, kind, blank,
              architecture, width, head):
    facts = {
        "general.architecture": architecture, "general.name": name,
        "general.file_type": 7 if kind == Q8_0 else 0}
    facts |= {f"{architecture}.{key}": value for key, value in {
        "context_length": context, "embedding_length": width,
        "block_count": layers, "feed_forward_length": FFN * width // EMBED,
        "attention.head_count": HEADS, "attention.head_count_kv": HEADS_KV,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": head,
        "vocab_size": len(tokens)}.items()}
    if head != width // HEADS:
        facts |= {f"{architecture}.attention.key_length": head,
                  f"{architecture}.attention.value_length": head}
    if architecture.endswith("moe"):
        facts |= {f"{architecture}.expert_count": EXPERTS,
                  f"{architecture}.expert_used_count": 2,
                  f"{architecture}.expert_feed_forward_length":
                      FFN * width // EMBED}
    facts |= {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": (8, [text for text, _ in tokens]),
        "tokenizer.ggml.scores": (6, [-i for i in range(len(tokens))]),
        "tokenizer.ggml.token_type": (5, [kind for _, kind in tokens]),
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": blank,
    }
    if template:
        facts["tokenizer.chat_template"] = template
    return facts


def _pack(facts, tensors):
    """The bytes of a file."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(facts))
    for key, value in facts.items():
        head += _string(key) + _value(value)
    at = 0
    for tensor, shape, kind, packed in tensors:
        head += _string(tensor) + struct.pack(
            f"<I{len(shape)}QIQ", len(shape), *shape, kind, at)
        at += len(packed) + -len(packed) % 32
    return b"".join([head, bytes(-len(head) % 32), *(
        packed + bytes(-len(packed) % 32) for *_, packed in tensors)])


def _make(seed=1, layers=3, context=2048, weights="q8_0", template=TEMPLATE,
          name="tiny random", blank=True, more=0, architecture="llama",
          width=None, head=None, is_tied=False, facts={}):
    tokens = vocabulary(more)
    made = Weights(seed, weights)
    width = width or EMBED
    head = head or width // HEADS
    said = _metadata(tokens, layers, context, template, name, made.kind,
                     blank, architecture, width, head)
    return {**said, **facts}, list(_tensors(made, tokens, layers, architecture,
                                            width, head, is_tied))


def write(path, **options):
    """context: tokens.  weights: q8_0 or f32.  template: None for a model
    without one.  blank: its tokenizer puts one before each text.  more:
    further tokens, which it never says.  width: of a row.  head: of an
    attention head's row.  is_tied: the embedding is the output, too.  facts:
    further ones, or other values."""
    with open(path, "wb") as out:
        out.write(_pack(*_make(**options)))


def write_parts(folder, n, **options):
    """The same model in n files, and their paths: facts are in the first, and
    each has about as many tensors."""
    facts, tensors = _make(**options)
    each = -(-len(tensors) // n)
    paths = [f"{folder}/parts-{i + 1:05}-of-{n:05}.gguf" for i in range(n)]
    for i, path in enumerate(paths):
        split = {"split.no": Typed(2, "H", i), "split.count": Typed(2, "H", n),
                 "split.tensors.count": Typed(5, "i", len(tensors))}
        with open(path, "wb") as out:
            out.write(_pack({**(facts if i == 0 else {}), **split},
                            tensors[i * each:(i + 1) * each]))
    return paths
