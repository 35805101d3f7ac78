import type { PlannedEvent } from "./planned-event.ts";

interface Entry {
  readonly event: PlannedEvent;
  readonly order: number;
}

/** Events by time, equals in the order in which they were planned. */
export class EventHeap {
  readonly #entries: Entry[] = [];
  #count = 0;

  /** The next event that was not cancelled. */
  get first(): PlannedEvent | undefined {
    while (this.#entries[0]?.event.cancelled) this.#pop();
    return this.#entries[0]?.event;
  }

  take(): PlannedEvent | undefined {
    const { first } = this;
    if (first !== undefined) this.#pop();
    return first;
  }

  add(event: PlannedEvent): void {
    const entries = this.#entries;
    const entry = { event, order: this.#count++ };
    let index = entries.push(entry) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = entries[above];
      if (parent === undefined || isBefore(parent, entry)) break;
      entries[index] = parent;
      index = above;
    }
    entries[index] = entry;
  }

  /** Everything that is planned happens so much later. */
  shift(ms: number): void {
    for (const { event } of this.#entries) event.atMs += ms;
  }

  #pop(): void {
    const entries = this.#entries;
    const last = entries.pop();
    if (last === undefined || entries.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const [left, right] = [entries[child], entries[child + 1]];
      if (left === undefined) break;
      if (right !== undefined && isBefore(right, left)) child += 1;
      const earlier = entries[child];
      if (earlier === undefined || isBefore(last, earlier)) break;
      entries[index] = earlier;
      index = child;
    }
    entries[index] = last;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  const [a, b] = [one.event.atMs, other.event.atMs];
  return a === b ? one.order < other.order : a < b;
}
