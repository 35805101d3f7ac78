/**
 * The SET part of an update and its parameters, from a change and the columns of its fields. A null goes as 0, which is how these
 * rows say "not set": it must not delete the cell.
 */
export function assignmentsOf<T extends object>(
  change: T,
  columns: Readonly<Record<keyof T & string, string>>,
): { text: string; params: unknown[] } {
  const fields = (Object.keys(columns) as (keyof T & string)[]).filter((field) => change[field] !== undefined);
  return {
    text: fields.map((field) => `${columns[field]} = ?`).join(", "),
    params: fields.map((field) => change[field] ?? 0),
  };
}
