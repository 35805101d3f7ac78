import avsc from "avsc";

/** avsc's reading position; its fields are not in the published types. */
interface Tap {
  readonly buf: Buffer;
  readonly pos: number;
  readLong(): number;
  skipLong(): void;
  readString(): string;
}

interface Reader {
  _read(tap: Tap): unknown;
}

let bounded = false;

/** The type of a schema, given as JSON text. */
export function avroType(schema: string): avsc.Type {
  boundBlocks();
  return avsc.Type.forSchema(JSON.parse(schema) as avsc.Schema);
}

/**
 * avsc believes the item count in front of an array or map: four bytes of a record of another shape make it fill the memory.
 * An item takes at least a byte, so a count above the bytes that are left is refused.
 */
function boundBlocks(): void {
  if (bounded) return;
  bounded = true;
  Object.assign(avsc.types.ArrayType.prototype, {
    _read(this: { itemsType: Reader }, tap: Tap): unknown[] {
      const items: unknown[] = [];
      for (let count = blockCount(tap); count > 0; count = blockCount(tap)) {
        for (; count > 0; count -= 1) items.push(this.itemsType._read(tap));
      }
      return items;
    },
  });
  Object.assign(avsc.types.MapType.prototype, {
    _read(this: { valuesType: Reader }, tap: Tap): Record<string, unknown> {
      const entries: [string, unknown][] = [];
      for (let count = blockCount(tap); count > 0; count = blockCount(tap)) {
        for (; count > 0; count -= 1) entries.push([tap.readString(), this.valuesType._read(tap)]);
      }
      return Object.fromEntries(entries);
    },
  });
}

/** A negative count stands before the size of the block, which is of no use here. */
function blockCount(tap: Tap): number {
  const count = tap.readLong();
  if (count < 0) tap.skipLong();
  const items = Math.abs(count);
  if (!(items <= tap.buf.length - tap.pos)) throw new RangeError("a block says it has more items than there are bytes");
  return items;
}
