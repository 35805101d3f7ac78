interface Event {
  readonly atMs: number;
  readonly number: number;
  readonly run: () => void;
}

/** Virtual time: what is to happen when, equals in the order in which they were planned. */
export class Events {
  readonly #heap: Event[] = [];
  #count = 0;
  #nowMs = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  at(atMs: number, run: () => void): void {
    const heap = this.#heap;
    const event = { atMs: Math.max(atMs, this.#nowMs), number: this.#count++, run };
    let index = heap.push(event) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || before(parent, event)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = event;
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.#nowMs + delayMs, run);
  }

  /** Lets everything happen that is planned until then, and what comes of it until then. */
  run(untilMs: number): void {
    for (let event = this.#heap[0]; event !== undefined && event.atMs <= untilMs; event = this.#heap[0]) {
      this.#pop();
      this.#nowMs = event.atMs;
      event.run();
    }
    this.#nowMs = untilMs;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (left === undefined) break;
      if (right !== undefined && before(right, left)) child += 1;
      const earlier = heap[child];
      if (earlier === undefined || before(last, earlier)) break;
      heap[index] = earlier;
      index = child;
    }
    heap[index] = last;
  }
}

function before(one: Event, other: Event): boolean {
  return one.atMs === other.atMs ? one.number < other.number : one.atMs < other.atMs;
}

/** Chance that a seed repeats (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
