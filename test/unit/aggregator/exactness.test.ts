import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Aggregator } from "../../../services/aggregator/core/aggregator.ts";
import { AbandonedError } from "../../../services/common/errors.ts";
import type { BatchContext, DecodedRecord } from "../../../services/common/kafka/contracts.ts";
import { errorCodes, type TokenOutcome } from "../../../services/common/messages/records.ts";
import { collection, failure, outcomeRecord, refreshId, startOfTime, success, topic } from "./outcomes.ts";
import { processOnce } from "./reference.ts";
import { portsInto, World } from "./world.ts";

type Log = readonly DecodedRecord<TokenOutcome>[];
const generation = 3;

const end = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("A", "B", "C").map(success) },
  { weight: 1, arbitrary: fc.constantFrom(...errorCodes).map(failure) },
);
const refresh = fc.record({
  tokens: fc.uniqueArray(fc.constantFrom("1", "2", "3", "300"), { minLength: 1, maxLength: 4 }),
  repeats: fc.array(fc.nat({ max: 3 }), { maxLength: 3 }),
  missing: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constant(1) }),
});
/** Logs of up to three refreshes that share tokens: every ordinal once or more (perhaps one missing), in any order, with gaps. */
const logs = fc
  .array(refresh, { minLength: 1, maxLength: 3 })
  .chain((refreshes) => {
    const places = refreshes.flatMap(({ tokens, repeats, missing }, number) =>
      [...tokens.keys(), ...repeats.filter((ordinal) => ordinal < tokens.length)]
        .slice(missing)
        .map((ordinal) => ({ refresh_id: refreshId(number), ordinal, total: tokens.length, token_id: tokens[ordinal] ?? "" })),
    );
    const records = fc.tuple(...places.map((place) => fc.tuple(fc.constant(place), end, fc.nat({ max: 2 }), fc.nat({ max: 9 }))));
    return records.chain((entries) => fc.shuffledSubarray(entries, { minLength: entries.length }));
  })
  .map((entries): Log => {
    let offset = 0;
    return entries.map(([place, result, gap, lateness]) => {
      offset += 1 + gap;
      // Clocks disagree: an outcome may say it ended before its refresh was requested.
      return outcomeRecord(offset, { ...place, ...result, created_at: startOfTime + offset * 1_000 - lateness * 3_000 });
    });
  });

function contextOf(log: Log, mayAct: () => boolean = () => true): BatchContext {
  return {
    topic,
    partition: 0,
    signal: new AbortController().signal,
    mayAct,
    highWatermark: (log.at(-1)?.offset ?? -1) + 1,
  };
}

function instance(world: World, step: () => Promise<void>): Aggregator {
  return new Aggregator({ generation, ...portsInto(world, step), progress: new Map() });
}

/** Hands `log` from index `from` to the aggregator in polls of the given sizes, calling `committed` after each. */
async function consume(
  aggregator: Aggregator,
  log: Log,
  options: { from: number; polls: readonly number[]; context: BatchContext; committed?: (index: number) => void },
): Promise<void> {
  let at = options.from;
  for (let turn = 0; at < log.length; turn += 1) {
    const size = options.polls[turn % options.polls.length] ?? 1;
    await aggregator.handle(log.slice(at, at + size), options.context);
    at = Math.min(at + size, log.length);
    options.committed?.(at);
  }
}

function expectReference(world: World, log: Log): void {
  const reference = processOnce(log, generation);
  for (const [key, { metadata, version, refreshed_at, refresh_id }] of reference.tokens) {
    expect(world.token(key)).toMatchObject({ metadata, version, refreshed_at, refresh_id });
    expect(world.latestStates.get(key)).toMatchObject({ metadata, version });
  }
  expect(world.latestStates.size).toBe(reference.tokens.size);
  for (const [id, { succeeded, unchanged, failed }] of reference.summaries) {
    expect(world.progress(id)).toMatchObject({ succeededCount: succeeded, unchangedCount: unchanged, failedCount: failed });
  }
  expect(new Set(world.errors)).toEqual(new Set(reference.errors));
  const said = new Map(world.completions.map((completion) => [JSON.stringify(completion), completion]));
  expect([...said.values()]).toEqual(expect.arrayContaining([...reference.completions.values()]));
  expect(said.size).toBe(reference.completions.size);
}

/** A marketplace that discards what is not newer never sees an older content behind a newer one, whatever was repeated. */
function expectOneContentPerVersion(world: World): void {
  const contents = new Map<string, string>();
  for (const state of world.states) {
    const key = `${state.token_id}/${state.version}`;
    expect(JSON.stringify(state)).toBe(contents.get(key) ?? JSON.stringify(state));
    contents.set(key, JSON.stringify(state));
  }
}

class Crash extends Error {}
function crashNow(): void {
  throw new Crash();
}

/** A step that waits for its turn, and from the given one on does something else as well. */
function afterSteps(count: number, turn: () => Promise<void>, act: () => void): () => Promise<void> {
  let taken = 0;
  return async () => {
    await turn();
    if (taken >= count) act();
    taken += 1;
  };
}

describe("exactly once in effect", () => {
  it("counts, stores and publishes what one pass over the log would, whatever the polls", async () => {
    const polls = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(logs, polls, async (log, sizes) => {
        const world = new World();
        await consume(
          instance(world, async () => {}),
          log,
          { from: 0, polls: sizes, context: contextOf(log) },
        );
        expectReference(world, log);
        expect(world.completions).toHaveLength(processOnce(log, generation).completions.size);
      }),
      { numRuns: 300 },
    );
  });

  it("ends at the same state and says the same, after crashes behind any effect and replays from any earlier offset", async () => {
    const run = fc.record({
      effects: fc.nat({ max: 40 }),
      polls: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 3 }),
      rewind: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat({ max: 20 }) }),
      sameProcess: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(logs, fc.array(run, { maxLength: 6 }), async (log, runs) => {
        const world = new World();
        let committed = 0;
        let budget = 0;
        const step = async () => {
          if (budget === 0) throw new Crash();
          budget -= 1;
        };
        let aggregator = instance(world, step);
        const last = { effects: Number.POSITIVE_INFINITY, polls: [5], rewind: 0, sameProcess: false };
        for (const { effects, polls, rewind, sameProcess } of [...runs, last]) {
          budget = effects;
          if (!sameProcess) aggregator = instance(world, step);
          const from = Math.max(0, committed - rewind);
          await consume(aggregator, log, {
            from,
            polls,
            context: contextOf(log),
            committed: (index) => {
              committed = index;
            },
          }).catch((error) => expect(error).toBeInstanceOf(Crash));
        }
        expectReference(world, log);
        expectOneContentPerVersion(world);
      }),
      { numRuns: 1_000 },
    );
  });

  it("keeps the newest when an instance that lost the partition goes on writing, however the two are interleaved", async () => {
    const sizes = fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 }));
    const moments = fc.tuple(fc.nat({ max: 30 }), fc.nat({ max: 60 }));
    await fc.assert(
      fc.asyncProperty(logs, sizes, moments, fc.scheduler(), async (log, [oldSize, newSize], [lost, crash], scheduler) => {
        const world = new World();
        const turn = () => scheduler.schedule(Promise.resolve()).then(() => {});
        let owner: Promise<void> | undefined;
        const owners = async () => {
          let committed = 0;
          for (const lastStep of [crash, Number.POSITIVE_INFINITY]) {
            await consume(instance(world, afterSteps(lastStep, turn, crashNow)), log, {
              from: committed,
              polls: [newSize],
              context: contextOf(log),
              committed: (index) => {
                committed = index;
              },
            }).catch((error) => expect(error).toBeInstanceOf(Crash));
          }
        };
        const takeOver = () => {
          owner ??= owners();
        };
        const old = consume(instance(world, afterSteps(lost, turn, takeOver)), log, {
          from: 0,
          polls: [oldSize],
          context: contextOf(log, () => owner === undefined),
        }).catch((error) => expect(error).toBeInstanceOf(AbandonedError));
        await scheduler.waitFor(old);
        takeOver();
        await scheduler.waitFor(owner ?? Promise.reject(new Error("nobody took over")));
        expectReference(world, log);
        expectOneContentPerVersion(world);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("the model of these tests", () => {
  it("has logs with repeated ordinals, shared tokens, completions and returns to an earlier content", () => {
    const seen = { repeated: 0, shared: 0, completed: 0, returned: 0 };
    for (const log of fc.sample(logs, { numRuns: 300, seed: 1 })) {
      const { completions, summaries, tokens } = processOnce(log, generation);
      const counted = [...summaries.values()].reduce((sum, { done }) => sum + done.size, 0);
      if (counted < log.length) seen.repeated += 1;
      if (completions.size > 0) seen.completed += 1;
      for (const key of tokens.keys()) {
        const contents = log.filter(({ value }) => `${collection}:${value.token_id}` === key).map(({ value }) => value.metadata);
        if (new Set(contents).size > 1) seen.shared += 1;
        if (/A.*B.*A/.test(contents.join())) seen.returned += 1;
      }
    }
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5);
  });
});
