"""What engines serve that is no chat, and bodies for it."""

import json

TEXT = "a text that is longer than sixteen tokens of a model are "
CHAT = [{"role": "user", "content": TEXT}]
RERANK = {"query": "what", "documents": [TEXT, "two"]}
COUNT = "/v1/messages/count_tokens"
BODIES = {
    COUNT: {"messages": CHAT, "system": "be brief"},
    "/v1/rerank": RERANK, "/rerank": RERANK, "/v2/rerank": RERANK,
    "/v1/score": {"text_1": TEXT, "text_2": ["one", "two"]},
    "/score": {"text_1": [TEXT], "text_2": "one"},
    "/classify": {"input": [TEXT, "b"]}, "/pooling": {"input": TEXT},
    "/tokenize": {"prompt": TEXT}, "/detokenize": {"tokens": [300, 301]},
    "/v1/images/generations": {"prompt": TEXT, "n": 2},
    "/v1/audio/speech": {"input": TEXT, "voice": "any"}}
KINDS = {
    "vllm": [p for p in BODIES if "images" not in p and "audio" not in p],
    "sglang": ["/v1/rerank", "/v1/score", "/classify", "/tokenize",
               "/detokenize", "/v1/images/generations"],
    "llamacpp": [COUNT, "/v1/rerank", "/rerank", "/tokenize", "/detokenize"],
    "openai": ["/v1/images/generations", "/v1/audio/speech"]}
FREE = (COUNT, "/tokenize", "/detokenize")
FORMS = ("/v1/audio/transcriptions", "/v1/audio/translations")


def body_of(path, **more):
    return {"model": "mock-model", **BODIES[path], **more}


FORM = "multipart/form-data; boundary=----------------------0123456789abcdef"


def form_of(file, model="mock-model", **fields):
    mark = b"--" + FORM.partition("=")[2].encode() + b"\r\n"
    parts = [f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'
             .encode() for name, value in {**fields, "model": model}.items()]
    parts.insert(1, b'Content-Disposition: form-data; name="file";'
                 b' filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n' + file)
    return b"".join(mark + p + b"\r\n" for p in parts) \
        + mark.rstrip() + b"--\r\n"


def cost(path, answer):
    """Tokens of the prompt and of the answer, as the engine counts them."""
    if path in FREE or "audio" in path:
        return 0, 0
    usage = json.loads(answer)["usage"]
    answered = usage.get("output_tokens", 0)
    return usage["total_tokens"] - answered, answered
