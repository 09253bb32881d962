// Feeds articles through the official client for JavaScript; prints the results as JSON.
//
// Usage: node main.mjs URL INDEX FILE, where each line of FILE is an article as JSON.

import { readFileSync } from "node:fs";
import { Client } from "@elastic/elasticsearch";

const [url, index, file] = process.argv.slice(2);
const articles = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const es = new Client({ node: url, compression: true });

/** Return the status code with which a call fails, or null if it succeeds. */
async function refused(call) {
  try {
    await call;
    return null;
  } catch (error) {
    return error.meta.statusCode;
  }
}

const { version } = JSON.parse(
  readFileSync(new URL("node_modules/@elastic/elasticsearch/package.json", import.meta.url)),
);
const bulk = await es.helpers.bulk({
  datasource: articles,
  concurrency: 1,
  flushBytes: 100_000,
  onDocument: (article) => [{ index: { _index: index, _id: article.id } }, article],
});
const [first] = articles;
// This article already exists.
const again = await es.bulk({ index, operations: [{ create: { _id: first.id } }, first] });
await es.indices.refresh({ index });
const { hits } = await es.search({ index, size: 0, track_total_hits: true }, { meta: false });
let scrolled = 0;
for await (const documents of es.helpers.scrollDocuments({ index, size: 100 })) {
  scrolled += documents.id ? 1 : 0;
}
const oddId = "a/b c%";
const written = await es.index({ index, id: oddId, document: first });
const read = await es.get({ index, id: oddId });
const removed = await es.delete({ index, id: oddId });

const got = {
  version,
  bulk: { flushed: bulk.successful, failed: bulk.failed + (again.errors ? again.items.length : 0) },
  found: hits.total.value,
  scrolled,
  odd_id: [written.result, read.found, removed.result],
  errors: {
    missing: await refused(es.get({ index, id: "missing" })),
    conflict: await refused(es.create({ index, id: first.id, document: first })),
    invalid: await refused(es.search({ index, query: { none: {} } })),
  },
  exists: [await es.indices.exists({ index }), await es.indices.exists({ index: `${index}-missing` })],
};
process.stdout.write(JSON.stringify(got));
await es.close();
