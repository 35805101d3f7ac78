import { RateCeiling } from "../rate-ceiling.ts";
import type { Outlook, Schedulable } from "../scheduler.ts";
import { HostSleep } from "./host-sleep.ts";
import { HostSpeed, type LearnedSpeed, type SpeedBounds } from "./host-speed.ts";
import { LastAttempts } from "./last-attempts.ts";
import { RecentCount } from "./recent-count.ts";
import { SlotAccount } from "./slot-account.ts";
import type { EndedCall } from "./verdict.ts";
import { WaitingTasks } from "./waiting-tasks.ts";

/** The pace at which a dead host's tokens get their outcomes: a thousand of them in some two minutes. */
const deadPace = { concurrency: 8, perSecond: 25 };
/** Of the learned rate, while a last attempt waits or is under way. */
const calmShare = 0.85;
/** What a pace that is still doubling may soon be; a wait that is overrated leaves the host idle. */
const growth = 4;
/** A measured pace needs as long to mean something. */
const measuredMs = 1_000;
const never = Number.POSITIVE_INFINITY;

/** The tasks of one project for one origin, and what is known of that host. */
export class HostQueue<T extends Schedulable> {
  readonly name: string;
  readonly account = new SlotAccount();
  readonly #bounds: SpeedBounds;
  readonly #speed: HostSpeed;
  readonly #sleep = new HostSleep();
  readonly #gate = new LastAttempts();
  /** The owner's rate is kept among the tasks that declare one. */
  readonly #declaredRate = new RateCeiling();
  readonly #learnedRate = new RateCeiling();
  readonly #ordinary = new WaitingTasks<T>();
  readonly #last = new WaitingTasks<T>();
  readonly #ends = new RecentCount();
  #started = 0;
  /** Since when it has had more to do than may be under way. */
  #busySinceMs = 0;
  /** When a call ended last, or the first of those under way started. */
  #heardMs = 0;

  constructor(name: string, { bounds, learned }: { bounds: SpeedBounds; learned: LearnedSpeed & { untilMs: number } }) {
    this.name = name;
    this.#bounds = bounds;
    this.#speed = new HostSpeed(bounds, learned);
    this.#sleep.sleep(learned.untilMs);
  }

  get waiting(): number {
    return this.#ordinary.size + this.#last.size;
  }

  get started(): number {
    return this.#started;
  }

  get learned(): LearnedSpeed & { untilMs: number } {
    return { ...this.#speed.learned, untilMs: this.#sleep.untilMs };
  }

  get meanCallMs(): number {
    return this.#speed.meanCallMs;
  }

  /** Calls that may be under way at once, before any ceiling that a task declares. */
  concurrency(nowMs: number): number {
    return this.#sleep.isDead(nowMs) ? deadPace.concurrency : Math.min(this.#speed.concurrency, this.#sleep.ramp);
  }

  asleep(nowMs: number): boolean {
    return this.#sleep.untilMs > nowMs;
  }

  /** Nothing here holds back a later task that another queue of the same name would not. */
  forgettable(nowMs: number): boolean {
    return this.waiting === 0 && this.#started === 0 && this.#declaredRate.nextAtMs() <= nowMs;
  }

  add(task: T): void {
    (task.lastAttempt ? this.#last : this.#ordinary).add(task);
    if (task.maxConcurrency !== null) this.#speed.declare(Math.min(task.maxConcurrency, this.#bounds.cap));
  }

  /** When a task may start as far as this queue is concerned; Infinity: not before a call ends or a task comes. */
  startableAtMs(nowMs: number): number {
    if (this.#started >= this.concurrency(nowMs)) return never;
    return Math.max(this.#sleep.untilMs, this.#pacedUntilMs(), Math.min(this.#ordinaryAtMs(), this.#lastAtMs(nowMs)));
  }

  /** Only when `startableAtMs` has come. */
  start(nowMs: number): T | undefined {
    const from = this.#choose(nowMs);
    const task = from.takeOldest();
    if (task === undefined) return undefined;
    if (this.#started === 0) this.#heardMs = nowMs;
    if (this.#started === 0 || this.waiting === 0) this.#busySinceMs = nowMs;
    this.#started += 1;
    if (task.lastAttempt) this.#gate.started(nowMs);
    if (task.maxRequestsPerSecond !== null) this.#declaredRate.start(task.maxRequestsPerSecond, nowMs);
    const perSecond = this.#perSecond(nowMs);
    if (perSecond < never) this.#learnedRate.start(perSecond, nowMs);
    this.#speed.started(this.#started, nowMs);
    return task;
  }

  ended(call: EndedCall): void {
    this.#started -= 1;
    this.#ends.add(call.endedMs);
    this.#heardMs = call.endedMs;
    this.#gate.ended(call);
    const probe = call.verdict === "refused" && this.#sleep.ramp <= 1;
    this.#sleep.ended(call);
    // A host that refuses the one call that should wake it says nothing of its speed.
    if (!probe) this.#speed.ended(call, !this.#gate.calm);
  }

  abandoned(task: T): void {
    this.#started -= 1;
    if (task.lastAttempt) this.#gate.abandoned();
  }

  drop(unwanted: (task: T) => boolean): readonly T[] {
    return [...this.#ordinary.drop(unwanted), ...this.#last.drop(unwanted)];
  }

  takeNewest(): T | undefined {
    const newestLast = this.#last.newest?.firstQueuedAt ?? Number.NEGATIVE_INFINITY;
    const newest = this.#ordinary.newest?.firstQueuedAt ?? Number.NEGATIVE_INFINITY;
    return (newestLast > newest ? this.#last : this.#ordinary).takeNewest() ?? this.#last.takeNewest();
  }

  outlook(nowMs: number): Outlook {
    return { queue: this.name, waiting: this.waiting, perSecond: this.#pacePerSecond(nowMs), asleepMs: this.#asleepMs(nowMs) };
  }

  #asleepMs(nowMs: number): number {
    return Math.max(0, this.#sleep.untilMs - nowMs);
  }

  #pacePerSecond(nowMs: number): number {
    const head = this.#ordinary.oldest ?? this.#last.oldest;
    // Calls that have not ended yet take at least as long.
    const callMs = Math.max(this.#speed.meanCallMs, this.#started > 0 ? nowMs - this.#heardMs : 0);
    const most = Math.min(head?.maxRequestsPerSecond ?? never, ((head?.maxConcurrency ?? never) / callMs) * 1_000);
    const likely = Math.min(this.#perSecond(nowMs), (this.#speed.concurrency / callMs) * 1_000);
    const measured = this.#started > 0 && nowMs - this.#busySinceMs >= measuredMs ? this.#ends.total(nowMs) : 0;
    return Math.min(most, (measured > 0 ? measured : likely) * (this.#speed.growing ? growth : 1));
  }

  #perSecond(nowMs: number): number {
    // What such a host asks for holds it back already.
    if (this.#sleep.isDead(nowMs)) return this.#sleep.asks ? never : deadPace.perSecond;
    return this.#speed.perSecond * (this.#gate.calm ? calmShare : 1);
  }

  #pacedUntilMs(): number {
    return this.#learnedRate.nextAtMs();
  }

  #ordinaryAtMs(): number {
    return this.#headAtMs(this.#ordinary.oldest);
  }

  #lastAtMs(nowMs: number): number {
    const head = this.#last.oldest;
    if (head === undefined) {
      this.#gate.rest();
      return never;
    }
    const alone = this.#ordinary.size === 0 && this.#started === this.#gate.underWay;
    const gateAtMs = this.#gate.nextAtMs({
      nowMs,
      alone,
      dead: this.#sleep.isDead(nowMs),
    });
    if (this.#gate.calm) this.#speed.retreat();
    return Math.max(this.#headAtMs(head), gateAtMs);
  }

  /** A ceiling on calls at once holds for all that the queue has under way: the host behind them is one. */
  #headAtMs(head: T | undefined): number {
    if (head === undefined || this.#started >= (head.maxConcurrency ?? never)) return never;
    return head.maxRequestsPerSecond === null ? Number.NEGATIVE_INFINITY : this.#declaredRate.nextAtMs();
  }

  #choose(nowMs: number): WaitingTasks<T> {
    const lastMay = this.#lastAtMs(nowMs) <= nowMs;
    if (!lastMay) return this.#ordinary;
    const ordinaryMay = this.#ordinaryAtMs() <= nowMs;
    if (!ordinaryMay) return this.#last;
    return (this.#ordinary.oldest?.firstQueuedAt ?? 0) <= (this.#last.oldest?.firstQueuedAt ?? 0) ? this.#ordinary : this.#last;
  }
}
