import type avsc from "avsc";

/** avsc's position in a buffer; not in the published types. Past the end it goes on without reading or writing. */
export interface Tap {
  readonly buf: Buffer;
  pos: number;
}

interface FieldType {
  _read(tap: Tap): unknown;
  _write(tap: Tap, value: unknown): void;
}

type Value = Readonly<Record<string, unknown>>;

interface RecordType {
  readonly fields: readonly { readonly name: string; readonly type: FieldType }[];
  readonly recordConstructor: new (...fields: readonly unknown[]) => Value;
}

/** What stands at the beginning of a record, and what it means. */
interface Shared {
  readonly bytes: Buffer;
  readonly values: readonly unknown[];
}

/** A beginning is looked for by its first bytes: longer than an id. */
const clueBytes = 40;
const rememberedCount = 1_000;

/**
 * The same type, for a log whose records repeat their first `count` fields, an id before all others: what repeats is read once, into texts that all
 * records share, and written as the bytes that it had before. The fields must be texts, numbers and nulls.
 */
export function shareLeadingFields(type: avsc.Type, count: number): avsc.Type {
  const { fields, recordConstructor: Constructor } = type as unknown as RecordType;
  const [leading, others] = [fields.slice(0, count), fields.slice(count)];
  const read = new Recent<string>();
  const written = new Recent<unknown>();

  const readLeading = (tap: Tap): Shared => {
    const start = tap.pos;
    const clue = tap.buf.toString("latin1", start, start + clueBytes);
    const known = read.get(clue);
    if (known !== undefined && stands(known.bytes, tap)) {
      tap.pos += known.bytes.length;
      return known;
    }
    const values = leading.map((field) => field.type._read(tap));
    const shared = { values, bytes: Buffer.from(tap.buf.subarray(start, tap.pos)) };
    if (tap.pos > tap.buf.length) return shared;
    read.set(clue, shared);
    written.set(values[0], shared);
    return shared;
  };
  const _read = (tap: Tap): Value => {
    const values = [...readLeading(tap).values];
    for (const field of others) values.push(field.type._read(tap));
    return new Constructor(...values);
  };

  const writeLeading = (tap: Tap, value: Value): void => {
    const start = tap.pos;
    for (const { name, type: fieldType } of leading) fieldType._write(tap, value[name]);
    if (tap.pos > tap.buf.length) return;
    const values = leading.map(({ name }) => value[name]);
    written.set(values[0], { values, bytes: Buffer.from(tap.buf.subarray(start, tap.pos)) });
  };
  const _write = (tap: Tap, value: Value): void => {
    const known = written.get(value[leading[0]?.name ?? ""]);
    const repeats = known?.values.every((one, index) => one === value[leading[index]?.name ?? ""]);
    if (known !== undefined && repeats) writeBytes(tap, known.bytes);
    else writeLeading(tap, value);
    for (const { name, type: fieldType } of others) fieldType._write(tap, value[name]);
  };
  // avsc's types are frozen.
  return Object.create(type, { _read: { value: _read }, _write: { value: _write } }) as avsc.Type;
}

function stands(bytes: Buffer, { buf, pos }: Tap): boolean {
  const end = pos + bytes.length;
  return end <= buf.length && bytes.compare(buf, pos, end) === 0;
}

function writeBytes(tap: Tap, bytes: Buffer): void {
  const start = tap.pos;
  tap.pos += bytes.length;
  if (tap.pos <= tap.buf.length) bytes.copy(tap.buf, start);
}

/** Forgets all when there are too many: what is still needed is found again at once. */
class Recent<K> {
  #known = new Map<K, Shared>();
  #lastKey: K | undefined;
  #last: Shared | undefined;

  get(key: K): Shared | undefined {
    return key === this.#lastKey ? this.#last : this.#known.get(key);
  }

  set(key: K, shared: Shared): void {
    if (this.#known.size >= rememberedCount) this.#known = new Map();
    this.#known.set(key, shared);
    this.#lastKey = key;
    this.#last = shared;
  }
}
