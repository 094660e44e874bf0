// The openai package.

import { keyOf, load, once, put, usageOf } from "./common.js";

const { OpenAI } = load("openai");

function client(job) {
  return new OpenAI({ baseURL: job.base, apiKey: keyOf(job),
    maxRetries: job.retries ?? 0, timeout: 30000 });
}

function take(choice, said, got) {
  const at = choice.index;
  put(got.text, at, typeof choice.text === "string" ? choice.text
    : said?.content);
  got.reasoning += said?.reasoning_content ?? said?.reasoning ?? "";
  got.finish_reason[at] = choice.finish_reason ?? got.finish_reason[at]
    ?? null;
  got.logprobs += choice.logprobs?.content?.length
    ?? choice.logprobs?.tokens?.length ?? 0;
  if (said?.role) got.roles++;
  for (const call of said?.tool_calls ?? []) {
    const n = call.index ?? got.tool_calls.length;
    got.tool_calls[n] ??= { name: "", arguments: "" };
    got.tool_calls[n].name += call.function.name ?? "";
    got.tool_calls[n].arguments += call.function.arguments ?? "";
  }
}

async function complete(api, job, got) {
  const body = { ...job.body, stream: job.stream };
  if (job.stream) body.stream_options = { include_usage: true };
  const answer = await api.create(body);
  for await (const chunk of job.stream ? answer : [answer]) {
    once(got.ids, chunk.id);
    got.usage = usageOf(chunk.usage) ?? got.usage;
    for (const choice of chunk.choices) {
      take(choice, choice.delta ?? choice.message, got);
    }
  }
}

export async function chat(job, got) {
  await complete(client(job).chat.completions, job, got);
}

export async function text(job, got) {
  await complete(client(job).completions, job, got);
}

export async function embeddings(job, got) {
  const answer = await client(job).embeddings.create(job.body);
  got.vectors = answer.data.map((row) => row.embedding);
  got.usage = { prompt_tokens: answer.usage.prompt_tokens };
}

export async function models(job, got) {
  for await (const model of client(job).models.list()) got.ids.push(model.id);
}
