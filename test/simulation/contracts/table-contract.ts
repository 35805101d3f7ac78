import assert from "node:assert/strict";
import { createRefreshStore } from "../../../services/aggregator/adapters/refresh-store.ts";
import { createLoadStates } from "../../../services/aggregator/adapters/stored-states.ts";
import { createTokenStore } from "../../../services/aggregator/adapters/token-store.ts";
import { checkOutcome } from "../../../services/aggregator/core/outcome.ts";
import { type Plan, planBatch } from "../../../services/aggregator/core/plan.ts";
import { writeRefreshRows } from "../../../services/common/cassandra/refresh-rows.ts";
import type { Cassandra } from "../../../services/common/cassandra/session.ts";
import type { TokenOutcome } from "../../../services/common/messages/records.ts";
import { createReadDone } from "../../../services/splitter/adapters/progress.ts";
import { createReadRegistered } from "../../../services/splitter/adapters/registered-tokens.ts";
import { failure, outcomeRecord, success } from "../../unit/aggregator/outcomes.ts";
import type { Contract } from "./contract.ts";

export interface TableStage {
  readonly cassandra: Cassandra;
  /** Never the same twice. */
  number(): number;
}

/** The stores of the services on the session of a stage, with a collection and a refresh of their own. */
function stores({ cassandra, number }: TableStage) {
  const digits = String(number());
  const collection = `0x${digits.padStart(40, "0")}`;
  const refreshId = `00000000-0000-4000-8000-${digits.padStart(12, "0")}`;
  const once = (write: () => Promise<void>): Promise<void> => write();
  const signal = new AbortController().signal;
  const requestedAt = Math.floor(Date.now()) * 1_000;
  const tokens = createTokenStore(cassandra, once);
  const refreshes = createRefreshStore({ cassandra, untilDurable: once, nowMs: Date.now, retentionSeconds: 90 * 86_400 });
  const plan = (...outcomes: readonly (readonly [number, Partial<TokenOutcome>])[]): Plan => {
    const common = { refresh_id: refreshId, collection_address: collection, requested_at: requestedAt, total: 10 };
    const checked = outcomes.map(([offset, value]) =>
      checkOutcome(outcomeRecord(offset, { ...common, ...value, created_at: requestedAt + offset }), 1),
    );
    return planBatch(checked, { heads: new Map(), progress: new Map() });
  };
  const apply = async ({ segments }: Plan): Promise<void> => {
    for (const segment of segments) {
      await tokens.write(segment.tokens, signal);
      await refreshes.write(segment.refreshes, signal);
    }
  };
  const token = (token_id: string) => ({ collection_address: collection, token_id });
  return { collection, refreshId, requestedAt, tokens, refreshes, plan, apply, token, cassandra };
}

const versionAt = (offset: number): number => 2 ** 40 + offset;

/** What the services rely on of Cassandra, through the adapters that they use. */
export const tableContract: readonly Contract<TableStage>[] = [
  {
    name: "what nobody wrote is absent",
    async holds(stage) {
      const { tokens, refreshes, refreshId, token, cassandra } = stores(stage);
      assert.equal((await tokens.load([token("1")])).size, 0);
      assert.equal((await refreshes.load([refreshId])).size, 0);
      assert.equal(await createReadDone(cassandra)(refreshId), undefined);
      assert.deepEqual(await createLoadStates(cassandra)([token("1")]), []);
    },
  },
  {
    name: "content is read back as it was written",
    async holds(stage) {
      const { plan, apply, tokens, token, cassandra } = stores(stage);
      await apply(
        plan([5, { token_id: "1", ...success('{ "name": "größe" }') }], [6, { token_id: "300", ordinal: 1, ...success("B") }]),
      );
      const heads = await tokens.load([token("1"), token("300"), token("2")]);
      assert.deepEqual(
        [...heads.values()].map(({ version }) => version).sort((a, b) => a - b),
        [versionAt(5), versionAt(6)],
      );
      const [state] = await createLoadStates(cassandra)([token("1")]);
      assert.equal(state?.metadata, '{ "name": "größe" }');
      assert.equal(state?.version, versionAt(5));
    },
  },
  {
    name: "the newer version of a row stays, whichever comes last",
    async holds(stage) {
      const { plan, apply, tokens, refreshes, refreshId, token } = stores(stage);
      const older = plan([5, { token_id: "1", ...success("A") }]);
      const newer = plan([5, { token_id: "1", ...success("A") }], [9, { token_id: "1", ordinal: 1, ...success("B") }]);
      await apply(newer);
      await apply(older);
      const head = (await tokens.load([token("1")])).values().next().value;
      assert.equal(head?.version, versionAt(9));
      const progress = (await refreshes.load([refreshId])).get(refreshId);
      assert.deepEqual([progress?.version, progress?.succeededCount, progress?.done[0]], [versionAt(9), 2, 0b11]);
    },
  },
  {
    name: "every cell has a timestamp of its own",
    async holds(stage) {
      const { plan, apply, token, cassandra } = stores(stage);
      // The second says the same again: only who read it, and when, is newer. The third is older than that, and its content newer.
      await apply(plan([5, { token_id: "1", ...success("A") }], [20, { token_id: "1", ordinal: 1, ...success("A") }]));
      await apply(plan([12, { token_id: "1", ordinal: 2, ...success("C") }]));
      const [state] = await createLoadStates(cassandra)([token("1")]);
      assert.equal(state?.metadata, "C");
      assert.equal((state?.refreshed_at ?? 0) % 1_000, 20);
    },
  },
  {
    name: "progress is read back with its bitmaps, counts and map",
    async holds(stage) {
      const { plan, apply, refreshes, refreshId, cassandra } = stores(stage);
      const planned = plan(
        [3, { ordinal: 9, ...failure("token_not_found") }],
        [4, { ordinal: 0, ...failure("invalid_response_status_code") }],
        [5, { ordinal: 2, token_id: "2", ...success("A") }],
      );
      await apply(planned);
      const progress = (await refreshes.load([refreshId])).get(refreshId);
      const right = planned.after.progress.get(refreshId);
      assert.deepEqual([...(progress?.done ?? [])], [...(right?.done ?? [])]);
      assert.deepEqual([...(progress?.failed ?? [])], [...(right?.failed ?? [])]);
      assert.deepEqual({ ...progress?.failedByCode }, { invalid_response_status_code: 1, token_not_found: 1 });
      assert.deepEqual(
        [progress?.version, progress?.total, progress?.succeededCount, progress?.failedCount, progress?.completedVersion],
        [versionAt(5), 10, 1, 2, 0],
      );
      const done = await createReadDone(cassandra)(refreshId);
      assert.ok(Buffer.isBuffer(done) && done.equals(Buffer.from(right?.done ?? [])));
    },
  },
  {
    name: "an error row leaves out what the failure has not",
    async holds(stage) {
      const { plan, apply, refreshId, cassandra } = stores(stage);
      await apply(plan([3, { ordinal: 4, ...failure("token_not_found") }], [4, { ordinal: 5, ...failure() }]));
      const query = "SELECT ordinal, error_code, status_code, response_body FROM refresh_errors WHERE refresh_id = ?";
      const rows = await cassandra.read(query, [refreshId]);
      assert.deepEqual(
        rows.map((row) => ({ ...row })).sort((a, b) => Number(a.ordinal) - Number(b.ordinal)),
        [
          { ordinal: 4, error_code: "token_not_found", status_code: null, response_body: null },
          { ordinal: 5, error_code: "invalid_response_status_code", status_code: 500, response_body: "nope" },
        ],
      );
    },
  },
  {
    name: "a registered token has no content, and content makes no registration",
    async holds(stage) {
      const { plan, apply, tokens, token, collection, cassandra } = stores(stage);
      const query = "INSERT INTO tokens (collection_address, bucket, token_id, registered_at) VALUES (?, ?, ?, ?)";
      await cassandra.write(query, [collection, "0", "1", 1_790_000_000_000_000]);
      await apply(plan([5, { token_id: "2", ...success("A") }]));
      assert.deepEqual([...(await tokens.load([token("1"), token("2")])).keys()], [`${collection}:2`]);
      assert.deepEqual([...(await createReadRegistered(cassandra)(collection, ["1", "2", "3"]))], ["1"]);
    },
  },
  {
    name: "the rows of a refresh may be written twice",
    async holds(stage) {
      const { collection, refreshId, requestedAt, cassandra } = stores(stage);
      const record = {
        refresh_id: refreshId,
        project_id: 7,
        collection_address: collection,
        token_ids: ["3", "1", "2"],
        requested_at: requestedAt,
        deadline: requestedAt,
        metadata_api_url: "https://api.example.com/tokens",
        token_policy: "open",
        max_concurrency: null,
        max_requests_per_second: null,
      } as const;
      const options = { retentionSeconds: 90 * 86_400, nowMs: Date.now() };
      for (const _ of [1, 2]) await writeRefreshRows(cassandra, record, options);
      const rows = await cassandra.read("SELECT token_ids FROM refresh_tokens WHERE refresh_id = ?", [refreshId]);
      assert.deepEqual(rows, [{ token_ids: ["3", "1", "2"] }]);
      const refreshes = await cassandra.read("SELECT total, requested_at FROM refreshes WHERE refresh_id = ?", [refreshId]);
      assert.deepEqual(refreshes, [{ total: 3, requested_at: BigInt(requestedAt) }]);
    },
  },
];
