import { createRequire } from "node:module";
import { types } from "cassandra-driver";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  type BatchRequest,
  batchRequestClass,
  type Encoder,
  patchBatchRequests,
} from "../../../../services/common/cassandra/batch-patch.ts";
import { parametersOf } from "../../../../services/common/cassandra/values.ts";

const require = createRequire(import.meta.url);
const DriverEncoder = require("cassandra-driver/lib/encoder.js") as new (protocolVersion: number, options: object) => Encoder;
const { defaultOptions } = require("cassandra-driver/lib/client-options.js") as { defaultOptions(): object };
const { ExecutionOptions } = require("cassandra-driver/lib/execution-options.js") as { ExecutionOptions: new () => object };
const Batch = batchRequestClass() as unknown as new (queries: readonly object[], options: object) => BatchRequest;

const writeOfDriver = batchRequestClass().prototype.write;
patchBatchRequests();
const writeOfOurs = batchRequestClass().prototype.write;

const { dataTypes } = types;
const text = fc.string({ unit: "binary", maxLength: 300 });
const absent = fc.constantFrom(null, undefined);
const whole = fc.oneof(fc.maxSafeInteger(), fc.constantFrom(2 ** 31, -(2 ** 31) - 1, 2 ** 32, -(2 ** 32), -1, 2 ** 53 - 1));
/** A column's type, and a value for it. */
const cell = fc.oneof(
  fc.tuple(fc.constantFrom(dataTypes.text, dataTypes.varchar, dataTypes.ascii), fc.oneof(text, absent)),
  fc.tuple(fc.constant(dataTypes.bigint), fc.oneof(whole, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), absent)),
  fc.tuple(fc.constant(dataTypes.int), fc.oneof(fc.integer(), absent)),
  fc.tuple(fc.constant(dataTypes.uuid), fc.oneof(fc.uuid(), absent)),
  fc.tuple(fc.constant(dataTypes.blob), fc.oneof(fc.uint8Array({ maxLength: 300 }), absent)),
  fc.tuple(fc.constant(dataTypes.boolean), fc.oneof(fc.boolean(), absent)),
);
const statement = fc.record({
  queryId: fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes)),
  cells: fc.array(cell, { maxLength: 8 }),
});

interface Wish {
  readonly serialConsistency?: number;
  readonly timestamp?: types.Long;
  readonly tracing?: boolean;
  readonly protocolVersion?: number;
}

function requestOf(statements: readonly { queryId?: Buffer; cells: readonly (readonly [number, unknown])[] }[], wish: Wish = {}) {
  const queries = statements.map(({ queryId, cells }) => ({
    query: "UPDATE",
    queryId,
    params: parametersOf(cells.map(([, value]) => value)),
    meta: { columns: cells.map(([code]) => ({ type: { code } })) },
  }));
  const options = Object.assign(new ExecutionOptions(), {
    getConsistency: () => types.consistencies.localQuorum,
    getSerialConsistency: () => wish.serialConsistency,
    getOrGenerateTimestamp: () => wish.timestamp ?? null,
    isQueryTracing: () => wish.tracing === true,
  });
  return { request: () => new Batch(queries, options), encoder: new DriverEncoder(wish.protocolVersion ?? 4, defaultOptions()) };
}

function expectSameFrame({ request, encoder }: ReturnType<typeof requestOf>, streamId: number): void {
  const [driver, ours] = [request(), request()];
  const expected = writeOfDriver.call(driver, encoder, streamId);
  expect(writeOfOurs.call(ours, encoder, streamId).equals(expected)).toBe(true);
  expect(ours.length).toBe(driver.length);
}

it("writes the frame that the driver writes, byte for byte", () => {
  const wish = fc.record(
    {
      serialConsistency: fc.constant(types.consistencies.localSerial),
      timestamp: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => types.Long.fromString(String(value))),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.array(statement, { minLength: 1, maxLength: 5 }), wish, fc.nat(32_767), (statements, wished, streamId) =>
      expectSameFrame(requestOf(statements, wished), streamId),
    ),
  );
});

it("writes frames larger than any before, and small ones after them", () => {
  const rows = (count: number, length: number) =>
    Array.from({ length: count }, (_, index) => ({
      queryId: Buffer.alloc(16, index),
      cells: [[dataTypes.text, "ä".repeat(length)] as const, [dataTypes.blob, Buffer.alloc(length, 1)] as const],
    }));
  for (const statements of [rows(1, 10), rows(250, 700), rows(2, 300_000), rows(1, 1)]) expectSameFrame(requestOf(statements), 7);
});

it.each<[string, Wish, Buffer | undefined]>([
  ["of another protocol version", { protocolVersion: 3 }, Buffer.alloc(16)],
  ["to be traced", { tracing: true }, Buffer.alloc(16)],
  ["of a statement that is not prepared", {}, undefined],
])("leaves a batch %s to the driver", (_what, wish, queryId) => {
  const cells = [[dataTypes.text, "a"] as const];
  expectSameFrame(requestOf([{ ...(queryId === undefined ? {} : { queryId }), cells }], wish), 1);
});

it("refuses what the driver refuses", () => {
  const tooMany = requestOf([{ queryId: Buffer.alloc(16), cells: [[dataTypes.int, 2 ** 31]] }]);
  expect(() => writeOfOurs.call(tooMany.request(), tooMany.encoder, 1)).toThrow(RangeError);
  const noUuid = requestOf([{ queryId: Buffer.alloc(16), cells: [[dataTypes.uuid, "no uuid"]] }]);
  expect(() => writeOfOurs.call(noUuid.request(), noUuid.encoder, 1)).toThrow(TypeError);
});
