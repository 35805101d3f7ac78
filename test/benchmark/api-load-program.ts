import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { LoadFigures, LoadTarget } from "./api-load.ts";
import { serveProgram } from "./programs/program.ts";

/**
 * Writes whole requests to sockets and reads as little of the answers as it can: status and length. One request at a time on a
 * connection, as HTTP libraries do it.
 */

let port = 0;
let requests: readonly Buffer[] = [];
let turn = 0;

serveProgram({
  aim: (target: LoadTarget) => {
    port = target.port;
    requests = target.requests.map((request) => Buffer.from(request, "latin1"));
  },
  saturate: ({ connections, seconds }: { connections: number; seconds: number }) =>
    measured(async (latenciesMs) => {
      const untilMs = performance.now() + seconds * 1_000;
      await withLanes(connections, (lanes) => Promise.all(lanes.map((lane) => repeat(lane, untilMs, latenciesMs))));
    }),
  arrive: ({ perSecond, seconds }: { perSecond: number; seconds: number }) =>
    measured((latenciesMs) => withLanes(arrivalLanes, (lanes) => arrivals(lanes, { perSecond, seconds }, latenciesMs))),
});

/** More than are ever under way unless the server has lost: those who find none free wait, and their waiting counts. */
const arrivalLanes = 128;

async function measured(work: (latenciesMs: number[]) => Promise<unknown>): Promise<LoadFigures> {
  const latenciesMs: number[] = [];
  const [begin, cpu] = [performance.now(), process.cpuUsage()];
  await work(latenciesMs);
  const wallMs = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  return { answered: latenciesMs.length, seconds: wallMs / 1_000, latenciesMs, cpuShare: (user + system) / 1_000 / wallMs };
}

async function repeat(lane: Lane, untilMs: number, latenciesMs: number[]): Promise<void> {
  while (performance.now() < untilMs) {
    const begin = performance.now();
    await lane.send(nextRequest());
    latenciesMs.push(performance.now() - begin);
  }
}

async function arrivals(
  lanes: readonly Lane[],
  { perSecond, seconds }: { perSecond: number; seconds: number },
  latenciesMs: number[],
): Promise<void> {
  const free = [...lanes];
  const late: number[] = [];
  const underWay = new Set<Promise<void>>();
  const problems: unknown[] = [];
  const start = (lane: Lane, dueMs: number) => {
    const answer = lane.send(nextRequest()).then(
      () => {
        latenciesMs.push(performance.now() - dueMs);
        const waiting = late.shift();
        if (waiting === undefined) free.push(lane);
        else start(lane, waiting);
      },
      (problem: unknown) => void problems.push(problem),
    );
    underWay.add(answer);
    void answer.finally(() => underWay.delete(answer));
  };
  const begin = performance.now();
  let dueMs = begin;
  while (dueMs < begin + seconds * 1_000 && problems.length === 0) {
    while (dueMs <= performance.now()) {
      const lane = free.pop();
      if (lane === undefined) late.push(dueMs);
      else start(lane, dueMs);
      dueMs += (-Math.log(1 - chance()) * 1_000) / perSecond;
    }
    await sleep(Math.max(0, Math.min(50, dueMs - performance.now())));
  }
  while (underWay.size > 0) await Promise.all(underWay);
  if (problems.length > 0) throw problems[0];
}

function nextRequest(): Buffer {
  turn = (turn + 1) % requests.length;
  return requests[turn] ?? Buffer.alloc(0);
}

let state = 1;

/** The same arrivals in every run: a linear congruential generator (Numerical Recipes), from 0 to below 1. */
function chance(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

async function withLanes<T>(count: number, work: (lanes: readonly Lane[]) => Promise<T>): Promise<T> {
  const lanes = await Promise.all(Array.from({ length: count }, () => Lane.open()));
  try {
    return await work(lanes);
  } finally {
    for (const lane of lanes) lane.close();
  }
}

class Lane {
  readonly #socket: Socket;
  #received = "";
  #resolve: () => void = () => undefined;
  #reject: (problem: Error) => void = () => undefined;

  static open(): Promise<Lane> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, noDelay: true }, () => resolve(new Lane(socket)));
      socket.once("error", reject);
    });
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#take(text));
    socket.on("error", (error) => this.#reject(error));
    socket.on("close", () => this.#reject(new Error("the server closed a connection")));
  }

  send(request: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.removeAllListeners("close");
    this.#socket.destroy();
  }

  #take(text: string): void {
    this.#received += text;
    const end = this.#received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#received)?.[1]);
    if (this.#received.length < end + 4 + length) return;
    const answer = this.#received;
    this.#received = "";
    if (answer.startsWith("HTTP/1.1 2")) this.#resolve();
    else this.#reject(new Error(`answered: ${answer.slice(0, 1_000)}`));
  }
}
