import type { Call } from "../../services/fetcher/adapters/metadata-api.ts";
import type { CallResult } from "../../services/fetcher/core/results.ts";
import { Host, type HostAnswer, resultOf } from "./hosts.ts";
import type { VirtualTime } from "./time/virtual-time.ts";
import type { WorldPlan } from "./world-plan.ts";

/** A call as the host saw it. */
export interface LoggedCall {
  readonly process: string;
  readonly projectId: number;
  /** `/r<refresh>/<token>`: every refresh has a path of its own. */
  readonly path: string;
  readonly startedMs: number;
  readonly endsMs: number;
  readonly status: HostAnswer["status"];
  readonly text: string;
  readonly retryAfterMs: number | undefined;
}

/** The projects' Metadata APIs, and the log of their calls. */
export class MetadataHosts {
  readonly calls: LoggedCall[] = [];
  readonly #hosts: ReadonlyMap<number, Host>;
  readonly #time: VirtualTime;
  readonly #listeners: ((call: LoggedCall) => void)[] = [];

  constructor(plan: WorldPlan, { time, seed }: { time: VirtualTime; seed: number }) {
    this.#time = time;
    this.#hosts = new Map(plan.projects.map(({ projectId, host }) => [projectId, new Host(host, seed * 31 + projectId)]));
  }

  onCall(listener: (call: LoggedCall) => void): void {
    this.#listeners.push(listener);
  }

  call({ projectId, path }: Call): Promise<CallResult> {
    const host = this.#hosts.get(projectId);
    if (host === undefined) throw new Error(`there is no project ${projectId}`);
    const { nowMs, owner } = this.#time;
    const startedAtMs = Date.now();
    const answer = host.arrive(path, nowMs);
    const { retryAfterMs } = host;
    const { status, text } = answer;
    const call = { process: owner?.name ?? "", projectId, path, startedMs: nowMs, endsMs: nowMs + answer.afterMs, status, text };
    const logged = { ...call, retryAfterMs: status === 429 || status === 503 ? retryAfterMs : undefined };
    this.calls.push(logged);
    for (const listener of this.#listeners) listener(logged);
    this.#time.after(answer.afterMs, () => host.left());
    return new Promise((resolve) => {
      this.#time.after(answer.afterMs, () => resolve(resultOf(answer, { startedAtMs, retryAfterMs })), { owner });
    });
  }
}
