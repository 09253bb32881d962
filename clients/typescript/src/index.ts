/** A typed client for the JSON that esdedup serves; its types are made from the description of the API. */

import type { components, operations } from "./schema.js";

export type { components, operations } from "./schema.js";
export type Row = components["schemas"]["Row"];
export type Page = components["schemas"]["Page"];
export type SimilarArticle = components["schemas"]["SimilarArticle"];

type Operation = keyof operations;
type Query<Name extends Operation> = NonNullable<operations[Name]["parameters"]["query"]>;
type Answer<Name extends Operation> = operations[Name]["responses"] extends {
  200: { content: { "application/json": infer Body } };
}
  ? Body
  : never;
type Value = string | number | boolean | readonly string[] | null | undefined;

/** What the server says is wrong (RFC 9457); `kind` tells one problem from another, and never changes. */
export class Problem extends Error {
  readonly kind: string;

  constructor(
    readonly status: number,
    type: string,
    readonly detail: string,
    /** After how many seconds to try again; null if that is no use. */
    readonly retryAfterS: number | null,
  ) {
    super(detail);
    this.name = "Problem";
    this.kind = type.replace("urn:esdedup:problem:", "");
  }
}

export interface Options {
  /** Passed on with every request, such as credentials for a proxy. */
  readonly init?: RequestInit;
  /** In place of the global one, for tests and other environments. */
  readonly fetch?: typeof fetch;
}

export class Client {
  /** @param base Where it is served, such as `http://localhost:8000`, or `http://localhost:9500/pages`. */
  constructor(
    private readonly base: string,
    private readonly options: Options = {},
  ) {}

  /** A page of the list: one row for each cluster with a match. */
  list(query: Query<"list_rows"> = {}, signal?: AbortSignal): Promise<Answer<"list_rows">> {
    return this.get("list", query, signal);
  }

  /** The pages of a list, one after the other, from the one that `query` asks for. */
  async *pages(query: Query<"list_rows"> = {}, signal?: AbortSignal): AsyncGenerator<Answer<"list_rows">> {
    for (let after = query.after; ; ) {
      const page = await this.list(after == null ? query : { ...query, after }, signal);
      yield page;
      if (page.next == null) return;
      after = page.next;
    }
  }

  /** What the same search finds as a whole: over time, by source, by language and the like. */
  overview(query: Query<"overview"> = {}, signal?: AbortSignal): Promise<Answer<"overview">> {
    return this.get("overview", query, signal);
  }

  article(query: Query<"article">, signal?: AbortSignal): Promise<Answer<"article">> {
    return this.get("article", query, signal);
  }

  /** The other articles of an article's cluster. */
  similar(query: Query<"similar">, signal?: AbortSignal): Promise<Answer<"similar">> {
    return this.get("similar", query, signal);
  }

  /** The articles of the cluster that a text would join if it arrived now. */
  similarToText(
    text: components["schemas"]["Text"],
    query: Query<"similar_to_text"> = {},
    signal?: AbortSignal,
  ): Promise<Answer<"similar_to_text">> {
    return this.send("similar", query, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(text),
      signal: signal ?? null,
    });
  }

  /** The distinct texts of an article's cluster. */
  versions(query: Query<"versions">, signal?: AbortSignal): Promise<Answer<"versions">> {
    return this.get("versions", query, signal);
  }

  /** Why two articles are in one cluster or not, in words. */
  explanation(query: Query<"explanation">, signal?: AbortSignal): Promise<Answer<"explanation">> {
    return this.get("explanation", query, signal);
  }

  sources(query: Query<"sources">, signal?: AbortSignal): Promise<Answer<"sources">> {
    return this.get("sources", query, signal);
  }

  timeline(query: Query<"timeline">, signal?: AbortSignal): Promise<Answer<"timeline">> {
    return this.get("timeline", query, signal);
  }

  /** The articles of a cluster, or with a fingerprint. */
  articles(query: Query<"articles">, signal?: AbortSignal): Promise<Answer<"articles">> {
    return this.get("articles", query, signal);
  }

  /** The address of the list as a feed (`feed.rss`) or as a file (`export.csv`, `export.jsonl`). */
  download(name: "feed.rss" | "export.csv" | "export.jsonl", query: Query<"export_csv"> = {}): string {
    return `${this.base}/${name}${written(query)}`;
  }

  private get<Body>(path: string, query: object, signal?: AbortSignal): Promise<Body> {
    return this.send(path, query, { signal: signal ?? null });
  }

  private async send<Body>(path: string, query: object, init: RequestInit): Promise<Body> {
    const request = this.options.fetch ?? fetch;
    const headers = { ...this.options.init?.headers, ...init.headers };
    const address = `${this.base}/api/v1/${path}${written(query)}`;
    const answer = await request(address, { ...this.options.init, ...init, headers });
    if (answer.ok) return (await answer.json()) as Body;
    // Something before the server, such as a proxy, answers in its own words.
    const told = (await answer.json().catch(() => ({}))) as Partial<components["schemas"]["ProblemDetails"]>;
    const retry = answer.headers.get("Retry-After");
    throw new Problem(
      answer.status,
      told.type ?? "unknown",
      told.detail ?? `${address} answers ${answer.status}`,
      retry === null ? null : Number(retry),
    );
  }
}

/** A parameter with several values is repeated; one without a value is left out. */
function written(query: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query as Record<string, Value>)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined) parameters.append(name, String(each));
    }
  }
  const text = parameters.toString();
  return text && `?${text}`;
}
