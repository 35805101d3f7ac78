interface Entry<Q> {
  readonly queue: Q;
  readonly atMs: number;
}

/** Which queue is to be looked at again when: a binary heap. A queue has one time; an earlier entry of it is left to go stale. */
export class WakeTimes<Q> {
  readonly #heap: Entry<Q>[] = [];
  readonly #times = new Map<Q, number>();

  set(queue: Q, atMs: number): void {
    if (this.#times.get(queue) === atMs) return;
    this.#times.set(queue, atMs);
    this.#push({ queue, atMs });
  }

  clear(queue: Q): void {
    this.#times.delete(queue);
  }

  /** Undefined when no queue waits for its time. */
  nextMs(): number | undefined {
    return this.#top()?.atMs;
  }

  takeDue(nowMs: number): Q | undefined {
    const top = this.#top();
    if (top === undefined || top.atMs > nowMs) return undefined;
    this.#pop();
    this.#times.delete(top.queue);
    return top.queue;
  }

  #top(): Entry<Q> | undefined {
    for (;;) {
      const top = this.#heap[0];
      if (top === undefined || this.#times.get(top.queue) === top.atMs) return top;
      this.#pop();
    }
  }

  #push(entry: Entry<Q>): void {
    let index = this.#heap.push(entry) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (this.#time(above) <= entry.atMs) break;
      this.#swap(index, above);
      index = above;
    }
  }

  #pop(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const earlier = this.#time(left + 1) < this.#time(left) ? left + 1 : left;
      if (this.#time(earlier) >= last.atMs) return;
      this.#swap(index, earlier);
      index = earlier;
    }
  }

  #time(index: number): number {
    return this.#heap[index]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  #swap(a: number, b: number): void {
    const [first, second] = [this.#heap[a], this.#heap[b]];
    if (first === undefined || second === undefined) return;
    this.#heap[a] = second;
    this.#heap[b] = first;
  }
}
