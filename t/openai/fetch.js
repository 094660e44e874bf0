// No package: the platform's fetch, read as a browser's page would read it.

import { keyOf, once, put, usageOf } from "./common.js";

async function post(job, path, body) {
  const answer = await fetch(job.base + path, {
    method: "POST", body: JSON.stringify(body),
    headers: { "content-type": "application/json",
      authorization: `Bearer ${keyOf(job)}` },
  });
  if (answer.ok) return answer;
  const said = await answer.json();
  throw Object.assign(new Error(said.error.message),
    { status: answer.status, type: said.error.type });
}

async function* events(body) {
  let text = "";
  for await (const part of body.pipeThrough(new TextDecoderStream())) {
    text += part;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const event of parts) {
      const data = event.split("\n").filter((l) => l.startsWith("data: "))
        .map((l) => l.slice(6)).join("\n");
      if (data) yield data;
    }
  }
}

function take(choice, said, got) {
  put(got.text, choice.index, choice.text ?? said?.content);
  got.reasoning += said?.reasoning_content ?? said?.reasoning ?? "";
  got.finish_reason[choice.index] = choice.finish_reason
    ?? got.finish_reason[choice.index] ?? null;
  got.logprobs += choice.logprobs?.content?.length
    ?? choice.logprobs?.tokens?.length ?? 0;
  if (said?.role) got.roles++;
  for (const call of said?.tool_calls ?? []) {
    const at = call.index ?? got.tool_calls.length;
    got.tool_calls[at] ??= { name: "", arguments: "" };
    put(got.tool_calls[at], "name", call.function.name);
    put(got.tool_calls[at], "arguments", call.function.arguments);
  }
}

function takeAll(answer, got) {
  if (answer.error) {
    throw Object.assign(new Error(answer.error.message),
      { type: answer.error.type });
  }
  once(got.ids, answer.id);
  got.usage = usageOf(answer.usage) ?? got.usage;
  for (const c of answer.choices) take(c, c.delta ?? c.message, got);
}

async function complete(path, job, got) {
  const body = { ...job.body, stream: job.stream };
  if (job.stream) body.stream_options = { include_usage: true };
  const answer = await post(job, path, body);
  if (!job.stream) return takeAll(await answer.json(), got);
  let done = false;
  for await (const data of events(answer.body)) {
    if (data === "[DONE]") done = true;
    else takeAll(JSON.parse(data), got);
  }
  if (!done) throw new Error("a clean end without [DONE]");
}

export const chat = (job, got) => complete("/chat/completions", job, got);
export const text = (job, got) => complete("/completions", job, got);

export async function embeddings(job, got) {
  const answer = await (await post(job, "/embeddings", job.body)).json();
  got.vectors = answer.data.map((row) => row.embedding);
  got.usage = { prompt_tokens: answer.usage.prompt_tokens };
}
