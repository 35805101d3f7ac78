import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** How the API answers one call. Without anything: 200 and the token's default metadata, at once. */
export interface Behaviour {
  readonly status?: number;
  /** An object is sent as JSON; text and bytes as they are. Default: the token's metadata for 200, a short error otherwise. */
  readonly body?: object | string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Before the first byte of the answer. */
  readonly delayMs?: number;
  /** Seconds, or an HTTP date. */
  readonly retryAfter?: number | string;
  /** Take the call and never answer. */
  readonly hang?: boolean;
  /** Close the connection without an answer. */
  readonly reset?: boolean;
}

/** One call as the API saw it. Times: wall for comparison with records, monotonic for comparison with each other. */
export interface ApiCall {
  readonly tokenId: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly wallMs: number;
  readonly monotonicMs: number;
  /** Calls under way when this one arrived, itself included. */
  readonly concurrent: number;
  /** undefined until the answer is sent, and for a call that never got one. */
  status: number | undefined;
  /** Just before the answer is written: what follows from the answer comes later. */
  answeredMonotonicMs: number | undefined;
  /** When the answer was written, or the connection gone: seen by this process, later than by the caller. */
  endedMonotonicMs: number | undefined;
}

export interface MetadataApi {
  /** What a collection registers as its `metadata_api_url`. */
  readonly url: string;
  readonly port: number;
  /** Every call so far, in the order of arrival. */
  readonly calls: readonly ApiCall[];
  readonly maxConcurrent: number;
  callsOf(tokenId: string): ApiCall[];
  /** Call i of the token gets behaviour i, later ones the last. `{}` is the default answer: `script("7", [{ status: 503 }, {}])`. */
  script(tokenId: string, behaviours: readonly [Behaviour, ...Behaviour[]]): void;
  /** For every token without a script; replaces the earlier one. */
  otherwise(behaviour: Behaviour | ((tokenId: string, callNumber: number) => Behaviour)): void;
  /** The body of a good answer to a token. */
  metadataOf(tokenId: string): string;
  close(): Promise<void>;
}

export interface MetadataApiOptions {
  readonly port?: number;
  readonly metadata?: (tokenId: string) => object;
}

/**
 * A project's Metadata API on loopback, with a script per token and a log of every call: the tests' ledger, kept apart from
 * what the service under test says of itself.
 */
export async function startMetadataApi(options: MetadataApiOptions = {}): Promise<MetadataApi> {
  const api = new SimulatedApi(options.metadata ?? sampleMetadata);
  await api.listen(options.port ?? 0);
  return api;
}

export function sampleMetadata(tokenId: string): object {
  return {
    name: `Token #${tokenId}`,
    image: `https://cdn.example/${tokenId}.png`,
    attributes: [{ trait_type: "level", value: 1 }],
  };
}

class SimulatedApi implements MetadataApi {
  readonly calls: ApiCall[] = [];
  maxConcurrent = 0;
  readonly #metadata: (tokenId: string) => object;
  readonly #scripts = new Map<string, readonly [Behaviour, ...Behaviour[]]>();
  readonly #callCounts = new Map<string, number>();
  readonly #server: Server;
  #otherwise: (tokenId: string, callNumber: number) => Behaviour = () => ({});
  #concurrent = 0;

  constructor(metadata: (tokenId: string) => object) {
    this.#metadata = metadata;
    this.#server = createServer((request, response) => this.#take(request, response));
    // A client keeps idle connections for long; an answer on a connection that is just being closed would look like a fault.
    this.#server.keepAliveTimeout = 60_000;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/metadata`;
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", () => resolve());
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  callsOf(tokenId: string): ApiCall[] {
    return this.calls.filter((call) => call.tokenId === tokenId);
  }

  script(tokenId: string, behaviours: readonly [Behaviour, ...Behaviour[]]): void {
    this.#scripts.set(tokenId, behaviours);
    this.#callCounts.delete(tokenId);
  }

  otherwise(behaviour: Behaviour | ((tokenId: string, callNumber: number) => Behaviour)): void {
    this.#otherwise = typeof behaviour === "function" ? behaviour : () => behaviour;
  }

  metadataOf(tokenId: string): string {
    return JSON.stringify(this.#metadata(tokenId));
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? "/";
    const tokenId = path.split("?", 1)[0]?.split("/").at(-1) ?? "";
    const call = this.#log(request, tokenId, path);
    const behaviour = this.#next(tokenId);
    response.on("close", () => {
      this.#concurrent -= 1;
      call.endedMonotonicMs = performance.now();
    });
    if (behaviour.hang) return;
    if (behaviour.reset) return void request.socket.destroy();
    if (behaviour.delayMs === undefined) this.#answer(response, call, behaviour);
    else setTimeout(() => this.#answer(response, call, behaviour), behaviour.delayMs);
  }

  #log(request: IncomingMessage, tokenId: string, path: string): ApiCall {
    this.#concurrent += 1;
    this.maxConcurrent = Math.max(this.maxConcurrent, this.#concurrent);
    const call: ApiCall = {
      tokenId,
      path,
      headers: request.headers,
      wallMs: Date.now(),
      monotonicMs: performance.now(),
      concurrent: this.#concurrent,
      status: undefined,
      answeredMonotonicMs: undefined,
      endedMonotonicMs: undefined,
    };
    this.calls.push(call);
    return call;
  }

  #next(tokenId: string): Behaviour {
    const number = (this.#callCounts.get(tokenId) ?? 0) + 1;
    this.#callCounts.set(tokenId, number);
    const script = this.#scripts.get(tokenId);
    if (script === undefined) return this.#otherwise(tokenId, number);
    return script[Math.min(number, script.length) - 1] ?? script[0];
  }

  #answer(response: ServerResponse, call: ApiCall, behaviour: Behaviour): void {
    if (response.destroyed) return;
    const status = behaviour.status ?? 200;
    call.status = status;
    const body = behaviour.body ?? (status === 200 ? this.metadataOf(call.tokenId) : { error: `answered ${status}` });
    call.answeredMonotonicMs = performance.now();
    response.writeHead(status, {
      "content-type": "application/json",
      ...(behaviour.retryAfter === undefined ? {} : { "retry-after": String(behaviour.retryAfter) }),
      ...behaviour.headers,
    });
    response.end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  }
}
