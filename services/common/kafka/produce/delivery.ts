import { AbandonedError } from "../../errors.ts";
import type { SendResult } from "../contracts.ts";
import type { Queued } from "./queue.ts";

/** How a record of a delivery can end: refusals and time-outs are tried again. */
export type Delivered =
  | Extract<SendResult, { ok: true }>
  | { readonly ok: false; readonly reason: "too_large"; readonly message: string };

export type Failure = Extract<SendResult, { ok: false }>;

export function notSent(message: string): Failure {
  return { ok: false, reason: "not_sent", message };
}

/** A record in the producer's queue. */
export interface Entry extends Queued {
  /** As in deploy/topics.yaml, for the metrics. */
  readonly baseTopic: string;
  readonly maxBytes: number;
  /** From the key on: record-batch.ts. */
  readonly encoded: Buffer;
  /** Undefined for a record of `send`: one try. */
  readonly delivery: Delivery | undefined;
  readonly end: (result: SendResult) => void;
  /** Put on a connection in the current call: what becomes of it is the broker's to say. */
  written: boolean;
}

/** One `deliver`: settles when every record of it has. */
export class Delivery {
  readonly settled: Promise<readonly Delivered[]>;
  /** Asked before each try of a record of it. */
  readonly mayAct: () => boolean;
  readonly entries: Entry[] = [];
  /** No record of it is to be tried again. */
  abandoned = false;
  readonly #results: Delivered[];
  #openCount: number;
  #incomplete = false;
  #resolve: (results: readonly Delivered[]) => void = () => undefined;
  #reject: (error: Error) => void = () => undefined;

  constructor(recordCount: number, mayAct: () => boolean) {
    this.mayAct = mayAct;
    this.#results = new Array<Delivered>(recordCount);
    this.#openCount = recordCount;
    this.settled = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (recordCount === 0) this.#resolve([]);
  }

  settle(index: number, result: Delivered): void {
    this.#results[index] = result;
    this.#count();
  }

  /** A record was given up: the delivery ends with AbandonedError, once its other records are answered. */
  giveUp(): void {
    this.#incomplete = true;
    this.#count();
  }

  #count(): void {
    this.#openCount -= 1;
    if (this.#openCount > 0) return;
    if (this.#incomplete) this.#reject(new AbandonedError("the delivery was given up"));
    else this.#resolve(this.#results);
  }
}
