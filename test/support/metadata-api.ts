import { answerOf, type Behaviour, sampleMetadata } from "./metadata-api/behaviour.ts";
import { hostileAnswers } from "./metadata-api/hostile-answers.ts";
import { HttpResponder, type Taken } from "./metadata-api/http-responder.ts";

export type { Behaviour } from "./metadata-api/behaviour.ts";

/** One call as the API saw it. Times: wall for comparison with records, monotonic for comparison with each other. */
export interface ApiCall {
  readonly tokenId: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
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
 * A project's Metadata API on loopback, in this process, with a script per token and a log of every call: the tests' ledger, kept
 * apart from what the service under test says of itself. The same as a program, with settings instead of scripts: metadata-api/main.ts.
 */
export async function startMetadataApi(options: MetadataApiOptions = {}): Promise<MetadataApi> {
  const api = new ScriptedApi(options.metadata ?? sampleMetadata);
  await api.listen(options.port ?? 0);
  return api;
}

class ScriptedApi implements MetadataApi {
  readonly calls: ApiCall[] = [];
  maxConcurrent = 0;
  readonly #metadata: (tokenId: string) => object;
  readonly #scripts = new Map<string, readonly [Behaviour, ...Behaviour[]]>();
  readonly #callCounts = new Map<string, number>();
  readonly #responder = new HttpResponder({
    take: (taken) => this.#take(taken),
    // An answer on a connection that is just being closed would look like a fault.
    keepAlive: () => ({ calls: null, idleMs: 60_000 }),
  });
  #otherwise: (tokenId: string, callNumber: number) => Behaviour = () => ({});
  #concurrent = 0;

  constructor(metadata: (tokenId: string) => object) {
    this.#metadata = metadata;
  }

  get port(): number {
    return this.#responder.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/metadata`;
  }

  listen(port: number): Promise<void> {
    return this.#responder.listen(port);
  }

  close(): Promise<void> {
    return this.#responder.close();
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

  #take(taken: Taken): void {
    const call = this.#log(taken);
    const behaviour = this.#next(call.tokenId);
    taken.onEnd = () => {
      this.#concurrent -= 1;
      call.endedMonotonicMs = performance.now();
    };
    if (behaviour.hang) taken.hang();
    else if (behaviour.reset) taken.reset();
    else if (behaviour.delayMs === undefined) this.#answer(taken, call, behaviour);
    else setTimeout(() => this.#answer(taken, call, behaviour), behaviour.delayMs);
  }

  #log({ path, head }: Taken): ApiCall {
    this.#concurrent += 1;
    this.maxConcurrent = Math.max(this.maxConcurrent, this.#concurrent);
    const call: ApiCall = {
      tokenId: tokenIdOf(path),
      path,
      headers: headersOf(head),
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

  #answer(taken: Taken, call: ApiCall, behaviour: Behaviour): void {
    if (call.endedMonotonicMs !== undefined) return;
    if (behaviour.hostile !== undefined) {
      taken.attack(hostileAnswers[behaviour.hostile]);
      return;
    }
    const answer = answerOf(behaviour, () => this.metadataOf(call.tokenId));
    call.status = answer.status;
    call.answeredMonotonicMs = performance.now();
    taken.answer(answer);
  }
}

function tokenIdOf(path: string): string {
  return path.split("?", 1)[0]?.split("/").at(-1) ?? "";
}

/** Names in lower case. */
function headersOf(head: string): Record<string, string> {
  const lines = head.split("\r\n").slice(1);
  const at = (line: string) => line.indexOf(":");
  return Object.fromEntries(lines.map((line) => [line.slice(0, at(line)).toLowerCase(), line.slice(at(line) + 1).trim()]));
}
