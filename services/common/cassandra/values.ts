import { types } from "cassandra-driver";

/**
 * A row as the services see it. Cells arrive as: bigint → bigint; int → number; text → string; uuid → lower-case string;
 * blob → Buffer of its own; list → array; map → plain object; boolean → boolean; no value, and an empty list → null.
 */
export type Row = Readonly<Record<string, unknown>>;

/**
 * Parameters go as: bigint column ← number or bigint; int ← number; uuid ← string; blob ← Uint8Array; the others as they
 * arrive. A number must be a whole one within ±(2^53 − 1): the driver would cut a fraction and read NaN as 0 without a word.
 *
 * **null and undefined mean "leave the cell as it is", never "delete it"**: no parameter can write a tombstone. A condition
 * of a lightweight transaction on an absent value says `= null` in its text.
 */
export function parametersOf(values: readonly unknown[]): unknown[] {
  return values.map(parameterOf);
}

function parameterOf(value: unknown): unknown {
  if (value === null || value === undefined || isEmptyList(value)) return types.unset;
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new TypeError(`${value} is not a safe whole number`);
  if (typeof value === "bigint") return longOf(value);
  if (value instanceof Uint8Array)
    return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.length);
  return value;
}

/** The driver sends an empty list as null, which would be a tombstone; both are read as null. */
const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

function longOf(value: bigint): types.Long {
  if (BigInt.asIntN(64, value) !== value) throw new RangeError(`${value} does not fit 64 bits`);
  return types.Long.fromBits(Number(BigInt.asIntN(32, value)), Number(value >> 32n));
}

/** The driver's row as a plain object of plain values. */
export function rowOf(row: Readonly<Record<string, unknown>>): Row {
  const plain: Record<string, unknown> = {};
  for (const [column, value] of Object.entries(row)) plain[column] = plainOf(value);
  return plain;
}

function plainOf(value: unknown): unknown {
  if (value instanceof types.Uuid) return value.toString();
  // Not the driver's own useBigIntAsLong: with it, parameters of bigint columns would have to be bigints as well.
  if (value instanceof types.Long) return (BigInt(value.high) << 32n) | BigInt(value.low >>> 0);
  return value;
}
