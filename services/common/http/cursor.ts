/** Where a page begins: behind the item of this place, or, null, at the list's beginning. */
export type Position = readonly (string | number)[] | null;

const version = 1;

/**
 * A continuation token: opaque to clients, bound to its list by `scope` (which list, which filter, whose), so that it cannot be
 * used with another. It holds a place, no page number: what is added or expires meanwhile moves nothing.
 */
export function encodeCursor(scope: string, position: Position): string {
  return Buffer.from(JSON.stringify([version, scope, position])).toString("base64url");
}

/** The position that encodeCursor was given; undefined: not a cursor of ours, of another list, or altered. */
export function decodeCursor(scope: string, cursor: string): Position | undefined {
  const content = parse(Buffer.from(cursor, "base64url").toString());
  if (!Array.isArray(content) || content.length !== 3 || content[0] !== version || content[1] !== scope) return undefined;
  const position: unknown = content[2];
  // Base64 and JSON have many spellings for one content; ours has one.
  return isPosition(position) && encodeCursor(scope, position) === cursor ? position : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isPosition(value: unknown): value is Position {
  if (value === null) return true;
  return Array.isArray(value) && value.every((part) => typeof part === "string" || Number.isSafeInteger(part));
}
