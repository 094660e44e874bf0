// Runs jobs with real clients of OpenAI's API and Anthropic's, one process for
// many jobs.
//
// stdin: one JSON object a line: {key, client, base, api, stream, body, secret,
// retries}
//   client: a file beside this one; api: chat, text, embeddings or models; of
//   anthropic: messages
//   body: as that API has it; secret: the API's key, if it matters
//   retries: how often openai and ai ask again by themselves
// stdout: one JSON object a line, as each job ends:
//   {key, text: [of each choice], finish_reason: [...], usage, tool_calls,
//    reasoning, logprobs, ids, roles, vectors, error, seconds}
//
// LLMGW_NPM names the directory whose node_modules have the clients.

import readline from "node:readline";

const clients = {};

async function run(job) {
  const got = {
    key: job.key, text: [], finish_reason: [], usage: null, tool_calls: [],
    reasoning: "", logprobs: 0, ids: [], roles: 0, vectors: null, error: null,
  };
  const begun = performance.now();
  try {
    clients[job.client] ??= import(`./${job.client}.js`);
    await (await clients[job.client])[job.api](job, got);
  } catch (e) {
    got.error = {
      name: e?.name ?? String(e), message: String(e?.message ?? e),
      status: e?.status ?? e?.statusCode ?? null,
      type: e?.type ?? e?.error?.error?.type ?? null,
    };
  }
  got.seconds = (performance.now() - begun) / 1000;
  console.log(JSON.stringify(got));
}

// The clients warn on the console, which is our output.
console.warn = console.error;
console.debug = console.error;

const running = [];
for await (const line of readline.createInterface({ input: process.stdin })) {
  running.push(run(JSON.parse(line)));
}
await Promise.all(running);
