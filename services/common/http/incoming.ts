import type { IncomingMessage } from "node:http";
import { type JsonBody, readJson } from "./json-body.ts";
import type { Share } from "./load.ts";

/** Ids that a handler adds to the log line of its request; never a secret, never a text that came from outside unchecked. */
export interface LogIds {
  projectId?: number;
  refreshId?: string;
}

/** A request as the handlers see it. */
export interface Incoming {
  /** Made here for every request; in its log line and in the answer's x-request-id. */
  readonly id: string;
  readonly method: string;
  /** `GET /v1/things/:thing_id`, undefined when no route fits. */
  readonly route: string | undefined;
  readonly params: Readonly<Record<string, string>>;
  /** What stands after the question mark. */
  readonly search: string;
  /** The other end of the connection; undefined for a unix socket or a connection that is gone. */
  readonly peerAddress: string | undefined;
  /** Every value of a header: one that was sent twice has two. */
  headers(name: string): readonly string[];
  /** The JSON body, read once and only when a handler asks. */
  readJson(maxBytes: number): Promise<JsonBody>;
  note(ids: LogIds): void;
}

export interface RouteMatch {
  readonly route: string | undefined;
  readonly params: Readonly<Record<string, string>>;
}

export class HttpIncoming implements Incoming {
  readonly id: string;
  readonly route: string | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly noted: LogIds = {};
  readonly #request: IncomingMessage;
  readonly #share: Share;

  constructor(request: IncomingMessage, id: string, match: RouteMatch & { readonly share: Share }) {
    this.#request = request;
    this.#share = match.share;
    this.id = id;
    this.route = match.route;
    this.params = match.params;
  }

  get method(): string {
    return this.#request.method ?? "";
  }

  get search(): string {
    const url = this.#request.url ?? "";
    const start = url.indexOf("?");
    return start < 0 ? "" : url.slice(start + 1);
  }

  get peerAddress(): string | undefined {
    return this.#request.socket.remoteAddress;
  }

  headers(name: string): readonly string[] {
    return this.#request.headersDistinct[name] ?? [];
  }

  readJson(maxBytes: number): Promise<JsonBody> {
    return readJson(this.#request, { maxBytes, share: this.#share });
  }

  note(ids: LogIds): void {
    Object.assign(this.noted, ids);
  }
}
