// The AI SDK with @ai-sdk/openai-compatible.  It has neither n nor logprobs.

import { keyOf, load, once, put, usage } from "./common.js";

const { embedMany, generateText, jsonSchema, streamText, tool } = load("ai");
const { createOpenAICompatible } = load("@ai-sdk/openai-compatible");

globalThis.AI_SDK_LOG_WARNINGS = false;

function provider(job) {
  return createOpenAICompatible({ name: "llm", baseURL: job.base,
    apiKey: keyOf(job), includeUsage: true });
}

function options(model, job) {
  const { body } = job;
  const tools = Object.fromEntries((body.tools ?? []).map((t) => [
    t.function.name, tool({ description: "a tool",
      inputSchema: jsonSchema({ type: "object" }) })]));
  return {
    model, maxOutputTokens: body.max_tokens, maxRetries: job.retries ?? 0,
    ...("temperature" in body ? { temperature: body.temperature } : {}),
    onError: () => {}, ...(body.tools ? { tools } : {}),
    ...(body.messages ? { messages: body.messages } : { prompt: body.prompt }),
  };
}

function calls(list) {
  return list.map((call) => ({ name: call.toolName,
    arguments: JSON.stringify(call.input) }));
}

function reason(name) {
  return name === "tool-calls" ? "tool_calls" : name;
}

function numbers(u) {
  return usage(u.inputTokens, u.outputTokens,
    u.inputTokenDetails?.cacheReadTokens ?? u.cachedInputTokens);
}

async function stream(model, job, got) {
  for await (const part of streamText(options(model, job)).fullStream) {
    if (part.type === "text-delta") put(got.text, 0, part.text);
    if (part.type === "reasoning-delta") got.reasoning += part.text;
    if (part.type === "tool-call") got.tool_calls.push(...calls([part]));
    if (part.type === "error") throw part.error;
    if (part.type === "finish-step") {
      once(got.ids, part.response.id);
      got.finish_reason = [reason(part.finishReason)];
      got.usage = numbers(part.usage);
    }
  }
}

async function whole(model, job, got) {
  const answer = await generateText(options(model, job));
  put(got.text, 0, answer.text);
  got.reasoning = answer.reasoningText ?? "";
  got.tool_calls = calls(answer.toolCalls);
  got.finish_reason = [reason(answer.finishReason)];
  got.usage = numbers(answer.usage);
  once(got.ids, answer.response.id);
}

export async function chat(job, got) {
  const model = provider(job).chatModel(job.body.model);
  await (job.stream ? stream : whole)(model, job, got);
}

export async function text(job, got) {
  const model = provider(job).completionModel(job.body.model);
  await (job.stream ? stream : whole)(model, job, got);
}

export async function embeddings(job, got) {
  const answer = await embedMany({ values: [job.body.input].flat(),
    model: provider(job).textEmbeddingModel(job.body.model),
    maxRetries: 0 });
  got.vectors = answer.embeddings;
  got.usage = { prompt_tokens: answer.usage.tokens };
}
