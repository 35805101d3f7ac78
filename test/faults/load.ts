import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../support/metadata-api/chance.ts";
import { waitFor } from "../support/wait-for.ts";
import type { Account, FaultProject } from "./account.ts";
import { postRefresh } from "./owners.ts";

export interface LoadOptions {
  /** Refreshes in all. */
  readonly refreshes: number;
  /** Tokens of the largest. */
  readonly mostTokens: number;
  /** Owners who post at once. */
  readonly owners: number;
  /** Between two posts of one owner, on average. */
  readonly pauseMs: number;
  /** Of the refreshes that ask for tokens which an earlier one has asked for. */
  readonly again: number;
  /** Of the posts that carry an Idempotency-Key. */
  readonly keyed: number;
}

export const usualLoad: LoadOptions = { refreshes: 16, mostTokens: 90, owners: 3, pauseMs: 150, again: 0.25, keyed: 0.75 };

export interface LoadParts {
  readonly account: Account;
  readonly projects: readonly FaultProject[];
  readonly random: Random;
  readonly ingressUrl: () => string;
  /** Fresh token ids of a project. */
  readonly tokenIds: (project: FaultProject, count: number) => readonly string[];
}

/** No post is given up earlier: the faults of a scenario are shorter. */
const postWithinMs = 120_000;

/** Owners who ask for refreshes, one after the other, in amounts and orders that the seed decides. */
export class Load {
  readonly posted: Promise<void>;
  readonly #parts: LoadParts;
  readonly #options: LoadOptions;
  #left: number;
  #keyCount = 0;

  constructor(parts: LoadParts, options: LoadOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#left = options.refreshes;
    this.posted = Promise.all(Array.from({ length: options.owners }, () => this.#own())).then(() => undefined);
    this.posted.catch(() => undefined);
  }

  /** Posts nothing more; what is on its way is answered. */
  stop(): Promise<void> {
    this.#left = 0;
    return this.posted;
  }

  /** Waits until owners have been told of so many accepted refreshes. */
  async accepted(count: number): Promise<void> {
    const seen = () => this.#parts.account.accepted.length;
    await waitFor(`${count} accepted refreshes`, seen, (accepted) => accepted >= count, { withinMs: 120_000, everyMs: 5 });
  }

  async #own(): Promise<void> {
    const { random } = this.#parts;
    while (this.#left > 0) {
      this.#left -= 1;
      await this.#post();
      await sleep(2 * this.#options.pauseMs * random());
    }
  }

  async #post(): Promise<void> {
    const { account, random, ingressUrl } = this.#parts;
    const project = this.#oneOf(this.#parts.projects);
    const tokenIds = this.#tokens(project);
    this.#keyCount += 1;
    const idempotencyKey = random() < this.#options.keyed ? `load-${this.#keyCount}` : undefined;
    const answer = await postRefresh({ project, tokenIds, idempotencyKey, url: ingressUrl, withinMs: postWithinMs });
    account.requests.push({ project, tokenIds, idempotencyKey, answer });
    // Nothing was requested: the amount of work stays what it was to be.
    if (answer.kind === "refused" && answer.status >= 500) {
      this.#left += 1;
      await sleep(200);
    }
  }

  #tokens(project: FaultProject): readonly string[] {
    const { account, random, tokenIds } = this.#parts;
    const earlier = account.requests.filter((request) => request.project === project);
    if (earlier.length > 0 && random() < this.#options.again) return this.#oneOf(earlier).tokenIds;
    return tokenIds(project, 1 + Math.floor(random() * this.#options.mostTokens));
  }

  #oneOf<T>(choices: readonly T[]): T {
    const choice = choices[Math.floor(this.#parts.random() * choices.length)];
    if (choice === undefined) throw new Error("nothing to choose from");
    return choice;
  }
}
