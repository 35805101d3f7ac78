import { answerOf } from "./behaviour.ts";
import { type CallEnd, CallLog, type CallPage, type CallRecord } from "./call-log.ts";
import { chanceOf } from "./chance.ts";
import { decide } from "./decide.ts";
import { hostileAnswers } from "./hostile-answers.ts";
import { HttpResponder, type Taken } from "./http-responder.ts";
import { createLimiter, type Limiter } from "./limiter.ts";
import { changeSettings, type Settings, type SettingsResult } from "./settings.ts";

/** What happened since the start, or since it was forgotten. */
export interface Counts {
  readonly calls: number;
  /** Of calls that have ended. */
  readonly ends: Readonly<Partial<Record<CallEnd, number>>>;
  readonly refused: number;
  readonly inFlight: number;
  readonly maxInFlight: number;
  readonly bodyBytes: number;
  readonly connections: { readonly opened: number; readonly open: number };
  /** Milliseconds since the epoch; null without a call. */
  readonly firstCallAtMs: number | null;
  readonly lastCallAtMs: number | null;
  /** How busy this process was: above about 0.9 it was the bottleneck, and a measurement says nothing of its caller. */
  readonly load: {
    readonly wallMs: number;
    readonly cpuMs: number;
    readonly cpuShare: number;
    readonly eventLoopUtilization: number;
  };
}

export interface SimulatorOptions {
  readonly settings: Settings;
  readonly logCalls: number;
  /** Told of each call that has ended. */
  readonly onEnded?: (record: CallRecord) => void;
}

/** The numbers of the calls of more tokens are forgotten, the oldest first. */
const rememberedTokens = 1_000_000;

/** A Metadata API that answers by settings, which may change while it runs. */
export class Simulator {
  readonly #options: SimulatorOptions;
  readonly #log: CallLog;
  readonly #responder: HttpResponder;
  readonly #callNumbers = new Map<string, number>();
  #settings: Settings;
  #limiter: Limiter | undefined;
  #inFlight = 0;
  /** Admitted and not answered: what a limit on calls in flight looks at. */
  #admitted = 0;
  #tally = emptyTally(0);

  constructor(options: SimulatorOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#limiter = limiterOf(options.settings);
    this.#log = new CallLog(options.logCalls);
    this.#responder = new HttpResponder({
      take: (taken) => this.#take(taken),
      keepAlive: () => this.#settings.keepAlive,
    });
  }

  get settings(): Settings {
    return this.#settings;
  }

  get port(): number {
    return this.#responder.port;
  }

  listen(port: number): Promise<void> {
    return this.#responder.listen(port);
  }

  close(): Promise<void> {
    return this.#responder.close();
  }

  /** For the calls from now on. A limit that is named begins anew, full. */
  change(change: unknown): SettingsResult {
    const changed = changeSettings(this.#settings, change);
    if (!changed.ok) return changed;
    this.#settings = changed.settings;
    if (Object.hasOwn(change as object, "limit")) this.#limiter = limiterOf(changed.settings);
    return changed;
  }

  calls(after: number, mostCalls: number): CallPage {
    return this.#log.page(after, mostCalls);
  }

  counts(): Counts {
    const { cpu, loop, sinceMs, openedBefore, ...tally } = this.#tally;
    const { user, system } = process.cpuUsage(cpu);
    const wallMs = performance.now() - sinceMs;
    const cpuMs = (user + system) / 1_000;
    const eventLoopUtilization = performance.eventLoopUtilization(loop).utilization;
    return {
      ...tally,
      inFlight: this.#inFlight,
      connections: { opened: this.#responder.connectionCount - openedBefore, open: this.#responder.openConnections },
      load: { wallMs, cpuMs, cpuShare: cpuMs / wallMs, eventLoopUtilization },
    };
  }

  /** Empties the log, the counts and the numbers of the calls of each token. Calls under way go on and count when they end. */
  forget(): Counts {
    const counts = this.counts();
    this.#log.clear();
    this.#callNumbers.clear();
    this.#tally = emptyTally(this.#responder.connectionCount);
    return counts;
  }

  #take(taken: Taken): void {
    const nowMs = performance.now();
    const tokenId = tokenIdOf(taken.path);
    const callNumber = this.#numberOf(tokenId);
    const random = chanceOf(this.#settings.seed, tokenId, callNumber);
    const call = { tokenId, callNumber, nowMs, inFlight: this.#admitted, random };
    const { behaviour, refused } = decide(this.#settings, this.#limiter, call);
    const record = this.#begin({ tokenId, callNumber, refused }, nowMs);
    let end: CallEnd = behaviour.hang ? "hang" : behaviour.reset ? "reset" : "left";
    taken.onEnd = () => this.#end(record, end, nowMs);
    const proceed = () => {
      if (record.end !== undefined) return;
      if (behaviour.hostile !== undefined) {
        end = "hostile";
        return taken.attack(hostileAnswers[behaviour.hostile]);
      }
      if (behaviour.reset) return taken.reset();
      const answer = answerOf(behaviour, () => "");
      end = `${answer.status}`;
      record.bodyBytes = answer.body.length;
      taken.answer(answer);
    };
    if (behaviour.hang) taken.hang();
    else if (behaviour.delayMs === undefined) proceed();
    else setTimeout(proceed, behaviour.delayMs);
  }

  #numberOf(tokenId: string): number {
    const number = (this.#callNumbers.get(tokenId) ?? 0) + 1;
    this.#callNumbers.set(tokenId, number);
    if (this.#callNumbers.size > rememberedTokens) this.#callNumbers.delete(this.#callNumbers.keys().next().value ?? "");
    return number;
  }

  #begin(call: Pick<CallRecord, "tokenId" | "callNumber" | "refused">, nowMs: number): CallRecord {
    this.#inFlight += 1;
    if (!call.refused) this.#admitted += 1;
    const tally = this.#tally;
    const atMs = performance.timeOrigin + nowMs;
    tally.calls += 1;
    tally.maxInFlight = Math.max(tally.maxInFlight, this.#inFlight);
    tally.firstCallAtMs ??= atMs;
    tally.lastCallAtMs = atMs;
    if (call.refused) tally.refused += 1;
    const sequence = this.#log.nextSequence;
    const record: CallRecord = {
      sequence,
      ...call,
      atMs,
      concurrent: this.#inFlight,
      bodyBytes: 0,
      end: undefined,
      durationMs: undefined,
    };
    this.#log.add(record);
    return record;
  }

  #end(record: CallRecord, end: CallEnd, startedAtMs: number): void {
    record.end = end;
    record.durationMs = performance.now() - startedAtMs;
    this.#inFlight -= 1;
    if (!record.refused) this.#admitted -= 1;
    this.#tally.ends[end] = (this.#tally.ends[end] ?? 0) + 1;
    this.#tally.bodyBytes += record.bodyBytes;
    this.#options.onEnded?.(record);
  }
}

function limiterOf({ limit }: Settings): Limiter | undefined {
  return limit === null ? undefined : createLimiter(limit);
}

function emptyTally(openedBefore: number) {
  return {
    calls: 0,
    ends: {} as Partial<Record<CallEnd, number>>,
    refused: 0,
    maxInFlight: 0,
    bodyBytes: 0,
    firstCallAtMs: null as number | null,
    lastCallAtMs: null as number | null,
    openedBefore,
    sinceMs: performance.now(),
    cpu: process.cpuUsage(),
    loop: performance.eventLoopUtilization(),
  };
}

function tokenIdOf(path: string): string {
  const query = path.indexOf("?");
  return path.slice(path.lastIndexOf("/", query < 0 ? path.length : query) + 1, query < 0 ? path.length : query);
}
