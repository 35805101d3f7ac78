import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { refreshProgram } from "../../deploy/operate/refresh.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createDeadLetters } from "../../services/common/kafka/consume/dead-letters.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { Metrics } from "../../services/common/metrics/metrics.ts";
import type { AttemptView } from "../support/clients.ts";
import { type ProgramEnd, runProgram } from "../support/program.ts";
import { type TestProject, TestSystem } from "../support/system.ts";
import { waitFor } from "../support/wait-for.ts";

let system: TestSystem;

beforeAll(async () => {
  // The longest tier keeps its ten minutes: what waits in it waits for the whole test.
  system = await TestSystem.start("refresh-inspect", { delays: "retry-2s=100,retry-10s=200" });
});
afterAll(() => system?.close());

const inspect = (refreshId: string, ...options: readonly string[]) =>
  runProgram(refreshProgram, ["inspect", refreshId, ...options], system.environment.env);

interface Document {
  readonly completed_at: string | null;
  readonly waits_for: readonly string[];
  readonly lags: readonly { readonly stage: string; readonly topic: string; readonly lag: number }[];
  readonly tokens: readonly { readonly token_id: string; readonly outcome: string; readonly attempts?: readonly object[] }[];
}
const documentOf = async (refreshId: string): Promise<Document> => JSON.parse((await inspect(refreshId, "--json")).stdout);

/** Looks until the sentences that say what it waits for are as expected. */
function untilItWaitsFor(refreshId: string, words: string): Promise<Document> {
  const said = ({ waits_for }: Document) => waits_for.some((sentence) => sentence.includes(words));
  return waitFor(`it waits for: ${words}`, () => documentOf(refreshId), said, { withinMs: 40_000, everyMs: 200 });
}

async function errorsOf({ owner }: TestProject, refreshId: string): Promise<Map<string, readonly AttemptView[]>> {
  const errors = await owner.listErrors(refreshId);
  return new Map(errors.map(({ token_id, attempts }) => [token_id, attempts]));
}

describe("a refresh that is complete", () => {
  it("shows every token's outcome, and the attempts of those that failed, as its owner sees them", async () => {
    const project = await system.createProject({ tokenIds: ["1", "2", "3", "4"] });
    project.api.script("2", [{ status: 404, body: "gone" }]);
    project.api.script("3", [{ status: 503 }, { status: 429 }, { status: 503, body: "later" }]);
    project.api.script("4", [{ status: 503 }, { hang: true }]);
    const refreshId = await system.refresh(project, ["1", "2", "3", "4", "5"]);
    await system.completed(project, refreshId);

    const shown = await errorsOf(project, refreshId);
    const summary = [...shown].map(([tokenId, attempts]) => [tokenId, attempts.map(({ status, next }) => [status, next])]);
    expect(new Map(summary as [string, unknown][])).toEqual(
      new Map<string, unknown>([
        ["2", [[404, "final"]]],
        [
          "3",
          [
            [503, "retry"],
            [429, "retry"],
            [503, "attempts_used_up"],
          ],
        ],
        [
          "4",
          [
            [503, "retry"],
            [null, "final"],
          ],
        ],
        ["5", []],
      ]),
    );
    const { waits_for, tokens, completed_at } = await documentOf(refreshId);
    expect(waits_for).toEqual(["Nothing: every token has its outcome."]);
    expect(completed_at).toMatch(/Z$/);
    expect(tokens.map(({ token_id, outcome }) => [token_id, outcome])).toEqual([
      ["1", "succeeded"],
      ["2", "failed"],
      ["3", "failed"],
      ["4", "failed"],
      ["5", "failed"],
    ]);
    for (const { token_id, attempts } of tokens) expect(attempts).toEqual(shown.get(token_id));

    const { code, stdout } = await inspect(refreshId.toUpperCase());
    expect(code).toBe(0);
    expect(stdout).toMatch(/tokens +5: 1 succeeded \(0 unchanged\), 4 failed, 0 pending\n/);
    expect(stdout).toMatch(/\n1 +2 +failed +invalid_response_status_code \(unexpected_status\), status 404, http:\S+\/2\n/);
    expect(stdout).toMatch(/\n +attempt +\S+Z: no status, \d+ ms, 0 bytes, timeout: final\n/);
    expect(stdout).toMatch(/\nfetcher +internal\.metadata\.token\.requested\.v1 +\d+ +0\n/);
  });
});

describe("a refresh that is under way says that it waits for", () => {
  afterEach(async () => {
    for (const name of ["splitter", "fetcher", "aggregator"] as const) {
      if (!system.service(name).isRunning()) await system.start(name);
    }
  });

  it("the splitter, which does not run", async () => {
    const project = await system.createProject();
    await system.service("splitter").stop();
    const refreshId = await system.refresh(project, ["1"]);
    const { tokens } = await untilItWaitsFor(refreshId, "The splitter, which has not finished 1 record of partition");
    expect(tokens).toMatchObject([{ token_id: "1", outcome: "pending" }]);
  });

  it("the fetcher, whose calls take long", async () => {
    const project = await system.createProject();
    await system.service("fetcher").stop();
    const refreshId = await system.refresh(project, ["1", "2"]);
    await untilItWaitsFor(refreshId, "The fetcher, which has not finished 2 records of partition");
  });

  it("a delay before another attempt, with the check of the watchdog that is due", async () => {
    const project = await system.createProject();
    project.api.script("1", [{ status: 503, retryAfter: 300 }]);
    const refreshId = await system.refresh(project, ["1", "2"]);
    const { waits_for, lags } = await untilItWaitsFor(refreshId, "A delay of 600 s: ");
    expect(lags.find(({ topic }) => topic.includes("retry-600s"))).toMatchObject({ stage: "delay tier" });
    expect(waits_for).toContainEqual(
      expect.stringMatching(/^Check 1 of the watchdog is due at \S+Z; its tokens were handed out once/),
    );
    expect(waits_for).toContainEqual(expect.stringMatching(/^At the latest its deadline, \S+Z/));
  });

  it("the aggregator, which does not run", async () => {
    const project = await system.createProject();
    await system.service("aggregator").stop();
    const refreshId = await system.refresh(project, ["1", "2", "3"]);
    await untilItWaitsFor(refreshId, "The aggregator, which has not counted 3 records of partition");
  });

  it("an operator, where a dead letter may be a part of it", async () => {
    const { env, topics } = system.environment;
    const logger = createLogger("test", "silent");
    const kafka = createKafka({ brokers: [env.KAFKA_BROKERS ?? ""], clientId: "test", requestTimeoutMs: 5_000, logger });
    const producer = await createProducer(kafka, { topics, logger, requestTimeoutMs: 5_000 });
    const letters = createDeadLetters({ producer, topics, metrics: new Metrics("test"), service: "splitter", groupId: "g" });
    const refreshId = randomUUID();
    const place = { topic: topics.refreshRequested.name, partition: 0, offset: 0, timestampMs: 0, headers: {} };
    await letters.put({ ...place, key: Buffer.from(refreshId), value: Buffer.from("no Avro") }, "undecodable", "why");
    await producer.close();
    const { code, stdout } = await inspect(refreshId);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /An operator: dead letter \d\/\d+ from internal\.metadata\.refresh\.requested\.v1 is a record of this refresh/,
    );
  });
});

it.each<[string, () => string, Partial<ProgramEnd>]>([
  ["an unknown refresh", () => randomUUID(), { code: 1, stdout: expect.stringContaining("Nothing is known of it") }],
  ["what is no id", () => "17", { code: 1, stderr: expect.stringContaining("It must be a UUID.") }],
])("refuses %s", async (_what, refreshId, end) => {
  expect(await inspect(refreshId())).toMatchObject(end);
});
