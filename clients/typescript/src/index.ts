/** A typed client for the JSON API of esdedup; its types are generated from the description of the API. */

import type { components, operations } from "./schema.js";

export type { components, operations } from "./schema.js";
export type Row = components["schemas"]["Row"];
export type Page = components["schemas"]["Page"];
export type SimilarArticle = components["schemas"]["SimilarArticle"];
/** Omitted fields have their defaults. */
export type EditRequest = Pick<components["schemas"]["EditRequest"], "kind"> &
  Partial<components["schemas"]["EditRequest"]>;

type Operation = keyof operations;
type Query<Name extends Operation> = NonNullable<operations[Name]["parameters"]["query"]>;
type Answer<Name extends Operation> = operations[Name]["responses"] extends {
  200: { content: { "application/json": infer Body } };
}
  ? Body
  : never;
type Value = string | number | boolean | readonly string[] | null | undefined;

/** A problem that the server reports (RFC 9457); `kind` identifies its type, and never changes. */
export class Problem extends Error {
  readonly kind: string;

  constructor(
    readonly status: number,
    type: string,
    readonly detail: string,
    /** After how many seconds to try again; null if that is useless. */
    readonly retryAfterS: number | null,
  ) {
    super(detail);
    this.name = "Problem";
    this.kind = type.replace("urn:esdedup:problem:", "");
  }
}

export interface Options {
  /** Used for every request, such as headers with credentials for a proxy. */
  readonly init?: RequestInit;
  /** Replaces the global `fetch`, for tests and other environments. */
  readonly fetch?: typeof fetch;
}

export class Client {
  private readonly base: string;

  /** @param base The address of the server, such as `http://localhost:8000`, or `http://localhost:9500/pages`. */
  constructor(
    base: string,
    private readonly options: Options = {},
  ) {
    this.base = base.replace(/\/+$/, "");
  }

  /** A page of the list: one row for each cluster with a match. */
  list(query: Query<"list_rows"> = {}, signal?: AbortSignal): Promise<Answer<"list_rows">> {
    return this.get("list", query, signal);
  }

  /** The pages of a list, one after the other, starting with the page that `query` requests. */
  async *pages(query: Query<"list_rows"> = {}, signal?: AbortSignal): AsyncGenerator<Answer<"list_rows">> {
    // A cursor includes its page.
    const { page: _, ...rest } = query;
    for (let current = query; ; ) {
      const page = await this.list(current, signal);
      yield page;
      if (page.next == null) return;
      current = { ...rest, after: page.next };
    }
  }

  /** A summary of all matches of a search: over time, by source, by language and by other fields. */
  overview(query: Query<"overview"> = {}, signal?: AbortSignal): Promise<Answer<"overview">> {
    return this.get("overview", query, signal);
  }

  /** The names of sources that contain a given string. */
  sourceNames(query: Query<"source_names"> = {}, signal?: AbortSignal): Promise<Answer<"source_names">> {
    return this.get("source-names", query, signal);
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
    return this.send("similar", query, signal, JSON.stringify(text));
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

  /** The articles of a cluster, or the articles with a fingerprint. */
  articles(query: Query<"articles">, signal?: AbortSignal): Promise<Answer<"articles">> {
    return this.get("articles", query, signal);
  }

  /** The edits of stories. Like `edit`, only for editors whom a proxy names. */
  edits(signal?: AbortSignal): Promise<Answer<"edits">> {
    return this.get("edits", {}, signal);
  }

  /** Merge, split or name stories, move articles, or undo an edit. */
  edit(request: EditRequest, signal?: AbortSignal): Promise<Answer<"edit">> {
    return this.send("edits", {}, signal, JSON.stringify(request));
  }

  /** The address of the list as a feed (`feed.rss`) or as a file (`export.csv`, `export.jsonl`). */
  download(name: "feed.rss" | "export.csv" | "export.jsonl", query: Query<"export_csv"> = {}): string {
    return `${this.base}/${name}${queryString(query)}`;
  }

  private get<Body>(path: string, query: object, signal?: AbortSignal): Promise<Body> {
    return this.send(path, query, signal);
  }

  /** Send a request: POST if there is JSON to send, else GET. */
  private async send<Body>(path: string, query: object, signal?: AbortSignal, json?: string): Promise<Body> {
    const { fetch: request = fetch, init } = this.options;
    const headers = new Headers(init?.headers);
    if (json !== undefined) headers.set("Content-Type", "application/json");
    const address = `${this.base}/api/v1/${path}${queryString(query)}`;
    const answer = await request(address, {
      ...init,
      method: json === undefined ? "GET" : "POST",
      headers,
      body: json ?? null,
      signal: AbortSignal.any([init?.signal, signal].filter((each) => each != null)),
    });
    if (answer.ok) return (await answer.json()) as Body;
    // A proxy in front of the server may answer in another format.
    const problem = (await answer.json().catch(() => ({}))) as Partial<components["schemas"]["ProblemDetails"]>;
    const retry = answer.headers.get("Retry-After");
    throw new Problem(
      answer.status,
      problem.type ?? "unknown",
      problem.detail ?? `${address} responded with status ${answer.status}`,
      retry === null ? null : Number(retry),
    );
  }
}

/** A parameter with several values is repeated; one without a value is left out. */
function queryString(query: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query as Record<string, Value>)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined) parameters.append(name, String(each));
    }
  }
  const text = parameters.toString();
  return text && `?${text}`;
}
