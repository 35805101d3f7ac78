import { describe, expect, it } from "vitest";
import { createDurableWrite } from "../../../services/aggregator/adapters/durable-write.ts";
import { CassandraError } from "../../../services/common/cassandra/errors.ts";
import { AbandonedError } from "../../../services/common/errors.ts";
import { createLogger } from "../../../services/common/logging/logger.ts";

const logs: Record<string, unknown>[] = [];
const logger = createLogger("aggregator", "info", { write: (line) => void logs.push(JSON.parse(line)) });
const untilDurable = createDurableWrite(logger, 1);
const never = new AbortController().signal;

/** Fails as given, one after the other, then succeeds. */
function failing(...failures: readonly Error[]) {
  const tries = { count: 0 };
  const write = async () => {
    const failure = failures[tries.count];
    tries.count += 1;
    if (failure !== undefined) throw failure;
  };
  return { write, tries };
}

describe("a write that has to be durable", () => {
  it("is repeated while Cassandra is away, and while nobody knows whether it was applied", async () => {
    const { write, tries } = failing(new CassandraError("unavailable", "no node"), new CassandraError("timed_out", "late"));
    await untilDurable(write, never);
    expect(tries.count).toBe(3);
    expect(logs.map(({ event, failure }) => [event, failure])).toEqual([
      ["aggregator.write_retried", "unavailable"],
      ["aggregator.write_retried", "timed_out"],
    ]);
  });

  it("is not repeated when Cassandra will never take it", async () => {
    const { write, tries } = failing(new CassandraError("invalid", "no such table"));
    await expect(untilDurable(write, never)).rejects.toThrow("no such table");
    expect(tries.count).toBe(1);
  });

  it("leaves its endless tries at once when the partition is lost", async () => {
    const lost = new AbortController();
    const write = async () => {
      lost.abort();
      throw new CassandraError("unavailable", "no node");
    };
    const patient = createDurableWrite(logger, 60_000);
    await expect(patient(write, lost.signal)).rejects.toBeInstanceOf(AbandonedError);
  });

  it("is not even begun when the partition is lost already", async () => {
    const { write, tries } = failing();
    await expect(untilDurable(write, AbortSignal.abort())).rejects.toBeInstanceOf(AbandonedError);
    expect(tries.count).toBe(0);
  });
});
