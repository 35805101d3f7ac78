import { describe, expect, it } from "vitest";
import { createTelemetry } from "../../../services/aggregator/adapters/telemetry.ts";
import { Aggregator } from "../../../services/aggregator/core/aggregator.ts";
import { createLogger } from "../../../services/common/logging/logger.ts";
import { Metrics } from "../../../services/common/metrics/metrics.ts";
import { failure, outcomeRecord, refreshId, success, topic } from "./outcomes.ts";
import { portsInto, World } from "./world.ts";

const context = {
  topic,
  partition: 0,
  signal: new AbortController().signal,
  mayAct: () => true,
  highWatermark: 100,
};

async function setUp() {
  const metrics = new Metrics("aggregator");
  const logs: Record<string, unknown>[] = [];
  const logger = createLogger("aggregator", "info", { write: (line) => void logs.push(JSON.parse(line)) });
  const ports = portsInto(new World(), async () => {});
  const caches = { progress: new Map() };
  const telemetry = createTelemetry(logger, metrics);
  const aggregator = new Aggregator({ generation: 1, ...ports, ...caches, telemetry });
  const value = async (series: string) => {
    const { body } = await metrics.text();
    const line = body.split("\n").find((text) => text.startsWith(`${series.replace("}", ',service="aggregator"}')} `));
    return line === undefined ? undefined : Number(line.split(" ").at(-1));
  };
  return { aggregator, value, logs };
}

describe("what an operator sees", () => {
  it("counts every token once, by how it ended, and every content that was published", async () => {
    const { aggregator, value, logs } = await setUp();
    const two = { refresh_id: refreshId(2) };
    const batch = [
      outcomeRecord(1, { total: 3, ordinal: 0, ...success("A") }),
      outcomeRecord(2, { total: 3, ordinal: 1, ...failure("token_not_found") }),
      outcomeRecord(3, { total: 3, ordinal: 1, ...success("B") }),
      outcomeRecord(4, { total: 3, ordinal: 2, token_id: "2", ...success("A") }),
      outcomeRecord(5, { total: 3, ordinal: 2, token_id: "2", ...success("A") }),
      outcomeRecord(6, { ...two, ...success("A") }),
    ];
    await aggregator.handle(batch, context);
    expect(await value('refresh_tokens_total{outcome="succeeded",error_code="none"}')).toBe(3);
    expect(await value('refresh_tokens_total{outcome="failed",error_code="token_not_found"}')).toBe(1);
    expect(await value('refresh_tokens_total{outcome="failed",error_code="unable_to_retrieve_metadata"}')).toBe(0);
    expect(await value('outcomes_ignored_total{reason="repeated"}')).toBe(1);
    expect(await value('outcomes_ignored_total{reason="after_completion"}')).toBe(1);
    expect(logs.filter(({ event }) => event === "refresh.completed")).toEqual([
      expect.objectContaining({ refresh_id: refreshId(1), total: 3, succeeded: 2, unchanged: 0, failed: 1 }),
      expect.objectContaining({ refresh_id: refreshId(2), total: 1, succeeded: 1, unchanged: 1 }),
    ]);
    await aggregator.handle(batch.slice(3), context);
    expect(await value('refresh_tokens_total{outcome="succeeded",error_code="none"}')).toBe(3);
    expect(logs.filter(({ event }) => event === "refresh.completed")).toHaveLength(2);
  });
});
