// @langchain/openai.

import { keyOf, load, once, put, usage } from "./common.js";

const { ChatOpenAI, OpenAI, OpenAIEmbeddings } = load("@langchain/openai");

function options(job) {
  const { model, max_tokens, n, logprobs, stop, temperature,
          response_format } = job.body;
  return {
    model, maxTokens: max_tokens, n, logprobs, stop, maxRetries: 0,
    ...(temperature === undefined ? {} : { temperature }),
    apiKey: keyOf(job), configuration: { baseURL: job.base },
    streaming: job.stream, streamUsage: true, useResponsesApi: false,
    ...(response_format
      ? { modelKwargs: { response_format } } : {}),
  };
}

export async function chat(job, got) {
  let model = new ChatOpenAI(options(job));
  if (job.body.tools) model = model.bindTools(job.body.tools);
  const messages = job.body.messages.map((m) => [m.role, m.content]);
  let answer;
  if (job.stream) {
    for await (const chunk of await model.stream(messages)) {
      answer = answer ? answer.concat(chunk) : chunk;
      once(got.ids, chunk.id);
    }
  } else {
    answer = await model.invoke(messages);
    once(got.ids, answer.id);
  }
  const meta = answer.response_metadata;
  put(got.text, 0, answer.content);
  got.reasoning = answer.additional_kwargs?.reasoning_content ?? "";
  got.finish_reason = [meta.finish_reason ?? null];
  got.logprobs = meta.logprobs?.content?.length ?? 0;
  got.tool_calls = (answer.tool_calls ?? []).map((call) => (
    { name: call.name, arguments: JSON.stringify(call.args) }));
  const u = answer.usage_metadata;
  got.usage = u ? usage(u.input_tokens, u.output_tokens,
    u.input_token_details?.cache_read) : null;
}

export async function text(job, got) {
  const model = new OpenAI(options(job));
  const answer = await model.generate([job.body.prompt]);
  for (const [at, one] of answer.generations[0].entries()) {
    put(got.text, at, one.text);
    got.finish_reason[at] = one.generationInfo?.finishReason
      ?? one.generationInfo?.finish_reason ?? null;
  }
  const u = answer.llmOutput?.tokenUsage;
  got.usage = u?.promptTokens
    ? usage(u.promptTokens, u.completionTokens) : null;
}

export async function embeddings(job, got) {
  const model = new OpenAIEmbeddings({ model: job.body.model, maxRetries: 0,
    apiKey: keyOf(job), configuration: { baseURL: job.base } });
  got.vectors = await model.embedDocuments([job.body.input].flat());
}
