import avsc from "avsc";
import { shareLeadingFields, type Tap } from "./shared-fields.ts";

interface ReadTap extends Tap {
  readLong(): number;
  skipLong(): void;
  readString(): string;
}

interface Reader {
  _read(tap: ReadTap): unknown;
}

let bounded = false;
/** Most arrays are empty, and wait in memory by the ten thousand. */
const none: readonly unknown[] = Object.freeze([]);

/** The type of a schema, given as JSON text. Of a record, the first fields may say `"shared": true`: shared-fields.ts. */
export function avroType(schema: string): avsc.Type {
  boundBlocks();
  const parsed = JSON.parse(schema) as avsc.Schema & { readonly fields?: readonly { readonly shared?: boolean }[] };
  const type = avsc.Type.forSchema(parsed);
  const count = parsed.fields?.findIndex(({ shared }) => shared !== true) ?? 0;
  return count > 0 ? shareLeadingFields(type, count) : type;
}

/**
 * avsc believes the item count in front of an array or map: four bytes of a record of another shape make it fill the memory.
 * An item takes at least a byte, so a count above the bytes that are left is refused.
 */
function boundBlocks(): void {
  if (bounded) return;
  bounded = true;
  Object.assign(avsc.types.ArrayType.prototype, {
    _read(this: { itemsType: Reader }, tap: ReadTap): readonly unknown[] {
      let count = blockCount(tap);
      if (count === 0) return none;
      const items: unknown[] = [];
      for (; count > 0; count = blockCount(tap)) {
        for (; count > 0; count -= 1) items.push(this.itemsType._read(tap));
      }
      return items;
    },
  });
  Object.assign(avsc.types.MapType.prototype, {
    _read(this: { valuesType: Reader }, tap: ReadTap): Record<string, unknown> {
      const entries: [string, unknown][] = [];
      for (let count = blockCount(tap); count > 0; count = blockCount(tap)) {
        for (; count > 0; count -= 1) entries.push([tap.readString(), this.valuesType._read(tap)]);
      }
      return Object.fromEntries(entries);
    },
  });
}

/** A negative count stands before the size of the block, which is of no use here. */
function blockCount(tap: ReadTap): number {
  const count = tap.readLong();
  if (count < 0) tap.skipLong();
  const items = Math.abs(count);
  if (!(items <= tap.buf.length - tap.pos)) throw new RangeError("a block says it has more items than there are bytes");
  return items;
}
