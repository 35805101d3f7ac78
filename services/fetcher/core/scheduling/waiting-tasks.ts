interface Aged {
  readonly firstQueuedAt: number;
}

/** A chunk is split when it is twice as long: short enough that moving its elements costs less than a microsecond. */
const chunkSize = 256;

/**
 * Tasks in the order in which they were first queued, equals in the order in which they came. Sorted chunks instead of one array:
 * a retry, older than most, is put near the front of 30,000 others without moving them.
 */
export class WaitingTasks<T extends Aged> {
  /** None is empty. */
  #chunks: T[][] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get oldest(): T | undefined {
    return this.#chunks[0]?.[0];
  }

  get newest(): T | undefined {
    return this.#chunks.at(-1)?.at(-1);
  }

  add(task: T): void {
    this.#size += 1;
    const index = this.#chunkFor(task.firstQueuedAt);
    const chunk = this.#chunks[index];
    if (chunk === undefined) {
      this.#chunks.push([task]);
      return;
    }
    const position = firstNewer(chunk, task.firstQueuedAt);
    if (position === chunk.length) chunk.push(task);
    else chunk.splice(position, 0, task);
    if (chunk.length >= 2 * chunkSize) this.#chunks.splice(index + 1, 0, chunk.splice(chunkSize));
  }

  takeOldest(): T | undefined {
    const chunk = this.#chunks[0];
    const task = chunk?.shift();
    if (task === undefined) return undefined;
    this.#size -= 1;
    if (chunk?.length === 0) this.#chunks.shift();
    return task;
  }

  takeNewest(): T | undefined {
    const chunk = this.#chunks.at(-1);
    const task = chunk?.pop();
    if (task === undefined) return undefined;
    this.#size -= 1;
    if (chunk?.length === 0) this.#chunks.pop();
    return task;
  }

  /** Removes and returns what is unwanted, in order. */
  drop(unwanted: (task: T) => boolean): T[] {
    const dropped: T[] = [];
    const kept = this.#chunks.map((chunk) =>
      chunk.filter((task) => {
        const drop = unwanted(task);
        if (drop) dropped.push(task);
        return !drop;
      }),
    );
    this.#chunks = kept.filter((chunk) => chunk.length > 0);
    this.#size -= dropped.length;
    return dropped;
  }

  /** The last chunk that begins with nothing newer; most tasks are the newest of all. */
  #chunkFor(firstQueuedAt: number): number {
    const last = this.#chunks.length - 1;
    if (last <= 0 || !isNewer(this.#chunks[last]?.[0], firstQueuedAt)) return Math.max(0, last);
    let low = 0;
    let high = last;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (isNewer(this.#chunks[middle]?.[0], firstQueuedAt)) high = middle;
      else low = middle;
    }
    return low;
  }
}

function isNewer(task: Aged | undefined, firstQueuedAt: number): boolean {
  return task !== undefined && task.firstQueuedAt > firstQueuedAt;
}

function firstNewer(chunk: readonly Aged[], firstQueuedAt: number): number {
  let low = 0;
  let high = chunk.length;
  if (!isNewer(chunk.at(-1), firstQueuedAt)) return high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isNewer(chunk[middle], firstQueuedAt)) high = middle;
    else low = middle + 1;
  }
  return low;
}
