// Feeds articles through the official client for JavaScript at an even pace, until all are taken.
//
// Usage: node feed.mjs URL URL INDEX FILE PACE, where FILE has one article as JSON on each line, and PACE is
// how many are sent in a second. Prints JSON lines: how many were taken, and statuses of what was not.

import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Client, HttpConnection } from "@elastic/elasticsearch";

const [one, other, index, file, pace] = process.argv.slice(2);
const say = (values) => process.stdout.write(`${JSON.stringify(values)}\n`);

class WatchedConnection extends HttpConnection {
  async request(params, options) {
    const answer = await super.request(params, options);
    if (answer.statusCode >= 400) {
      say({ status: answer.statusCode, retry_after: answer.headers["retry-after"] ?? null });
    }
    return answer;
  }
}

const es = new Client({
  nodes: [one, other],
  Connection: WatchedConnection,
  compression: true,
  requestTimeout: 20_000,
  retryOnTimeout: true,
});
const began = performance.now();
const lines = readFileSync(file, "utf8").trim().split("\n");
let left = lines.map((line, at) => ({ article: JSON.parse(line), due: began + (1000 * at) / Number(pace) }));

async function* due(each) {
  for (const one of each) {
    const early = one.due - performance.now();
    if (early > 0) {
      await pause(early);
    }
    yield one;
  }
}

// Of a request that fails for good the helper tells nothing but the error: what it has not called taken is left.
while (left.length) {
  const taken = new Set();
  try {
    await es.helpers.bulk({
      datasource: due(left),
      concurrency: 2,
      flushBytes: 200_000,
      flushInterval: 1_000,
      onDocument: ({ article: { _id, ...source } }) => [{ index: { _index: index, _id } }, source],
      onSuccess: ({ result }) => {
        taken.add(result.index._id);
        say({ fed: 1 });
      },
      onDrop: ({ status, error }) => {
        if (status !== 429 && status !== 503) {
          throw new Error(`an item has failed with ${status}: ${JSON.stringify(error)}`);
        }
      },
    });
  } catch (error) {
    const status = error.meta?.statusCode;
    if (status && ![429, 502, 503, 504].includes(status)) {
      throw error;
    }
    await pause(1_000);
  }
  left = left.filter(({ article }) => !taken.has(article._id));
}
await es.close();
