// What the drivers share.

import { createRequire } from "node:module";

export const load = createRequire(process.env.LLMGW_NPM + "/package.json");

export const keyOf = (job) => job.secret ?? "sk-test";

export function put(list, index, text) {
  list[index] = (list[index] ?? "") + (text ?? "");
}

export function once(list, value) {
  if (value && !list.includes(value)) list.push(value);
}

export function usage(prompt, completion, cached) {
  if (prompt == null) return null;
  return {
    prompt_tokens: prompt, completion_tokens: completion,
    total_tokens: prompt + completion, cached_tokens: cached ?? 0,
  };
}

export function usageOf(u) {
  return u ? usage(u.prompt_tokens, u.completion_tokens,
    u.prompt_tokens_details?.cached_tokens) : null;
}
