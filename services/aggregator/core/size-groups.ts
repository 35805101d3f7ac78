export interface GroupLimits {
  readonly maxBytes: number;
  readonly maxCount: number;
  /** An item above this stands alone. */
  readonly aloneBytes: number;
}

/** Cuts items, in order, into groups within the limits. */
export function groupBySize<T>(items: readonly T[], sizeOf: (item: T) => number, limits: GroupLimits): T[][] {
  const groups: T[][] = [];
  let open: T[] = [];
  let openBytes = 0;
  for (const item of items) {
    const bytes = sizeOf(item);
    if (bytes > limits.aloneBytes) {
      groups.push([item]);
      continue;
    }
    if (open.length === 0 || open.length >= limits.maxCount || openBytes + bytes > limits.maxBytes) {
      open = [];
      openBytes = 0;
      groups.push(open);
    }
    open.push(item);
    openBytes += bytes;
  }
  return groups;
}
