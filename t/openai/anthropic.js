// The @anthropic-ai/sdk package.

import { keyOf, load, once, put, usage } from "./common.js";

const Anthropic = load("@anthropic-ai/sdk").default;

export async function messages(job, got) {
  const api = new Anthropic({ baseURL: job.base, apiKey: keyOf(job),
    maxRetries: 0, timeout: 30000 }).messages;
  const answer = job.stream ? await api.stream(job.body).finalMessage()
    : await api.create(job.body);
  once(got.ids, answer.id);
  for (const part of answer.content) put(got.text, 0, part.text);
  got.finish_reason[0] = answer.stop_reason;
  got.usage = usage(answer.usage.input_tokens, answer.usage.output_tokens);
}
