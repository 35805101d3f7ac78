import fc from "fast-check";
import { expect, it } from "vitest";
import type { DecodedRecord, TopicPartition } from "../../../../services/common/kafka/contracts.ts";
import type { TokenRefresh } from "../../../../services/common/messages/records.ts";
import type { Delivery } from "../../../../services/fetcher/core/ports.ts";
import { type MoveRequest, main, type Open, world } from "./pipeline-world.ts";
import { success, tokenRefresh, topics } from "./records.ts";

const partitions = [0, 1];
const names = [main, ...topics.retryTiers.map(({ name }) => name)];
const delays = new Map<string, number>(topics.retryTiers.map(({ name, delayMs }) => [name, delayMs ?? 0]));

interface Line extends TopicPartition {
  readonly records: DecodedRecord<TokenRefresh>[];
  readonly left: Set<number>;
  position: number;
}

/** A log with its tiers, around a pipeline whose calls, deliveries and moves end in the order that a script says. */
class Model {
  readonly world = world({ windowRecords: 8, perQueue: 2, msPerRecord: 700 });
  readonly lines = new Map<string, Line>();
  readonly pausedSinceMs = new Map<string, number>();
  readonly longestPauseMs: number[] = [0];
  readonly produced: TokenRefresh[] = [];
  readonly outcomes: string[] = [];
  readonly appended = new Set<Open<MoveRequest, Delivery>>();
  readonly #seenPauses = { count: 0 };

  constructor() {
    for (const topic of names) {
      for (const partition of partitions) {
        this.lines.set(`${partition}/${topic}`, { topic, partition, records: [], left: new Set(), position: 0 });
      }
    }
  }

  produce(project: number, count: number): void {
    for (let index = 0; index < count; index += 1) {
      const refresh = tokenRefresh({ project_id: project, ordinal: this.produced.length, first_queued_at: this.produced.length });
      this.produced.push(refresh);
      this.#append({ topic: main, partition: project % 2 }, refresh);
    }
  }

  /** What a fetch brings, of a partition that is not paused. */
  read(pick: number, count = 6): void {
    const line = [...this.lines.values()][pick % this.lines.size];
    if (line === undefined || this.pausedSinceMs.has(`${line.partition}/${line.topic}`)) return;
    const records = this.#due(line).slice(0, count);
    line.position += records.length;
    if (records.length > 0) this.world.pipeline.take(records);
    this.#settle();
  }

  async endCall(pick: number): Promise<void> {
    await this.#take(this.world.calls, pick)?.end(success());
    this.#settle();
  }

  async endDelivery(pick: number): Promise<void> {
    const delivery = this.#take(this.world.deliveries, pick);
    const wanted = delivery?.what.wanted() === true;
    const { conclusion } = delivery?.what ?? {};
    if (wanted && conclusion?.kind === "outcome") this.outcomes.push(`${conclusion.outcome.ordinal}`);
    await delivery?.end(wanted ? "acknowledged" : "abandoned");
    this.#settle();
  }

  /** The records of the move are in the log; whoever made it is not told yet, and some may be back before that. */
  appendMove(pick: number): void {
    const move = this.#pick(this.world.moves, pick);
    if (move === undefined || this.appended.has(move) || !move.what.wanted()) return;
    this.appended.add(move);
    this.#appendRefreshes(move.what, move.what.refreshes.length);
  }

  /** `broken`: some of it reached the log before it was given up. */
  async endMove(pick: number, broken: boolean): Promise<void> {
    const move = this.#take(this.world.moves, pick);
    if (move === undefined) return;
    const appended = this.appended.has(move);
    const wanted = appended || (move.what.wanted() && !broken);
    const { length } = move.what.refreshes;
    if (!appended) this.#appendRefreshes(move.what, wanted ? length : broken ? Math.floor(length / 2) : 0);
    await move.end(wanted ? "acknowledged" : "abandoned");
    this.#settle();
  }

  /** The partition number goes to another member and comes back at once: everything from the low-water mark on is read again. */
  lose(partition: number): void {
    const lost = names.map((topic) => ({ topic, partition }));
    this.world.pipeline.lost(lost);
    for (const place of lost) {
      const line = this.#line(place);
      line.position = this.#mark(line);
    }
    this.#settle();
  }

  /** The alarm rings when it was set for. */
  pass(ms: number): void {
    const { state, alarms, pipeline } = this.world;
    const endMs = state.monotonicMs + ms;
    while (alarms.length > 0) {
      const atMs = state.monotonicMs + Math.min(...alarms.splice(0));
      if (atMs > endMs) {
        alarms.push(atMs - endMs);
        break;
      }
      state.monotonicMs = atMs;
      pipeline.proceed();
      this.#settle();
    }
    state.monotonicMs = endMs;
  }

  get idle(): boolean {
    const { calls, deliveries, moves, scheduler } = this.world;
    const unread = [...this.lines.values()].some((line) => line.position < line.records.length);
    const open = calls.length + deliveries.length + moves.length + scheduler.waiting + scheduler.started;
    return !unread && open === 0 && this.pausedSinceMs.size === 0;
  }

  unfinished(): string[] {
    return [...this.lines.values()].flatMap((line) =>
      this.#mark(line) === line.records.length ? [] : [`${line.partition}/${line.topic}`],
    );
  }

  #mark(line: Line): number {
    let mark = 0;
    while (line.left.has(mark)) mark += 1;
    return mark;
  }

  #line({ topic, partition }: TopicPartition): Line {
    const line = this.lines.get(`${partition}/${topic}`);
    if (line === undefined) throw new Error("no such partition");
    return line;
  }

  #due(line: Line): DecodedRecord<TokenRefresh>[] {
    const nowMs = this.world.state.monotonicMs;
    return line.records.slice(line.position).filter(({ timestampMs }) => timestampMs + (delays.get(line.topic) ?? 0) <= nowMs);
  }

  #append(place: TopicPartition, value: TokenRefresh): void {
    const line = this.#line(place);
    const offset = line.records.length;
    line.records.push({ ...place, offset, key: "", timestampMs: this.world.state.monotonicMs, bytes: 1, value });
  }

  #appendRefreshes({ refreshes, tier }: MoveRequest, count: number): void {
    for (const refresh of refreshes.slice(0, count)) {
      expect(refresh).toEqual(this.produced[refresh.ordinal]);
      this.#append({ topic: tier.name, partition: refresh.project_id % 2 }, refresh);
    }
  }

  #pick<T>(list: readonly T[], pick: number): T | undefined {
    return list[pick % Math.max(1, list.length)];
  }

  #take<T>(list: T[], pick: number): T | undefined {
    return list.splice(pick % Math.max(1, list.length), 1)[0];
  }

  #settle(): void {
    const { finished, pauses, state } = this.world;
    for (const position of finished.splice(0)) this.#line(position).left.add(position.offset);
    for (const line of pauses.slice(this.#seenPauses.count)) {
      const [what = "", name = ""] = line.split(" ");
      if (what === "pause") {
        expect(this.pausedSinceMs.has(name)).toBe(false);
        this.pausedSinceMs.set(name, state.monotonicMs);
      } else {
        const sinceMs = this.pausedSinceMs.get(name) ?? state.monotonicMs;
        this.longestPauseMs.push(state.monotonicMs - sinceMs);
        this.pausedSinceMs.delete(name);
      }
    }
    this.#seenPauses.count = pauses.length;
  }
}

type Step =
  | {
      readonly kind: "read" | "call" | "delivery" | "move" | "append" | "broken" | "lose" | "lease" | "full";
      readonly pick: number;
    }
  | { readonly kind: "produce"; readonly pick: number; readonly count: number }
  | { readonly kind: "pass"; readonly pick: number };

const pick = fc.nat({ max: 50 });
const often = (kind: "read" | "call" | "delivery" | "move" | "append") => fc.record({ kind: fc.constant(kind), pick });
const quietStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("produce" as const), pick, count: fc.integer({ min: 1, max: 20 }) }),
  often("read"),
  often("read"),
  often("call"),
  often("delivery"),
  often("move"),
  often("append"),
  fc.record({ kind: fc.constantFrom("lease" as const, "full" as const), pick }),
  fc.record({ kind: fc.constant("pass" as const), pick: fc.integer({ min: 1, max: 40_000 }) }),
);
const faultStep: fc.Arbitrary<Step> = fc.record({ kind: fc.constantFrom("lose" as const, "broken" as const), pick });

async function play(model: Model, step: Step): Promise<void> {
  if (step.kind === "produce") model.produce(step.pick % 4, step.count);
  else if (step.kind === "read") model.read(step.pick);
  else if (step.kind === "call") await model.endCall(step.pick);
  else if (step.kind === "delivery") await model.endDelivery(step.pick);
  else if (step.kind === "move") await model.endMove(step.pick, false);
  else if (step.kind === "append") model.appendMove(step.pick);
  else if (step.kind === "broken") await model.endMove(step.pick, true);
  else if (step.kind === "pass") model.pass(step.pick);
  else if (step.kind === "lose") model.lose(step.pick % 2);
  else if (step.kind === "lease") model.world.state.mayAct = step.pick % 3 > 0;
  else model.world.state.windowFull = step.pick % 2 > 0;
}

/** Everything goes well from here on, until there is nothing left to do. */
async function drain(model: Model): Promise<void> {
  const { world: ends } = model;
  ends.state.mayAct = true;
  ends.state.windowFull = false;
  for (let round = 0; round < 2_000 && !model.idle; round += 1) {
    for (let line = 0; line < model.lines.size; line += 1) model.read(line);
    while (ends.calls.length + ends.deliveries.length + ends.moves.length > 0) {
      await model.endMove(0, false);
      await model.endCall(0);
      await model.endDelivery(0);
    }
    model.pass(round % 5 === 4 ? 150_000 : 250);
  }
}

async function run(steps: readonly Step[]): Promise<Model> {
  const model = new Model();
  for (const step of steps) await play(model, step);
  await drain(model);
  expect(model.world.failures).toEqual([]);
  expect(model.idle).toBe(true);
  expect(model.unfinished()).toEqual([]);
  expect(new Set(model.outcomes).size).toBe(model.produced.length);
  expect(Math.max(...model.longestPauseMs)).toBeLessThanOrEqual(250);
  return model;
}

const scripts = (step: fc.Arbitrary<Step>) => fc.array(step, { minLength: 20, maxLength: 80 });

it("calls every token once, whatever was moved meanwhile, and no partition stays paused", async () => {
  let movedCount = 0;
  await fc.assert(
    fc.asyncProperty(scripts(quietStep), async (steps) => {
      const model = await run(steps);
      expect(model.outcomes).toHaveLength(model.produced.length);
      movedCount += model.world.moved.length;
    }),
    { numRuns: 60 },
  );
  expect(movedCount).toBeGreaterThan(0);
});

it("loses no token and no pause when partitions are lost and moves are given up half-way", async () => {
  await fc.assert(
    fc.asyncProperty(
      scripts(fc.oneof({ weight: 5, arbitrary: quietStep }, { weight: 1, arbitrary: faultStep })),
      async (steps) => {
        await run(steps);
      },
    ),
    { numRuns: 60 },
  );
});
