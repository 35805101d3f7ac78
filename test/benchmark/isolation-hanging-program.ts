import { type AddressInfo, createServer } from "node:net";
import { serveProgram } from "./programs/program.ts";

/** Metadata APIs that take every call and never answer. Each has an address of its own, as different projects' APIs have. */

const underWay = new Map<string, number>();
const mostUnderWay = new Map<string, number>();
let calls = 0;

function listen(address: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      const now = (underWay.get(address) ?? 0) + 1;
      underWay.set(address, now);
      mostUnderWay.set(address, Math.max(mostUnderWay.get(address) ?? 0, now));
      socket.on("data", () => {
        calls += 1;
      });
      socket.on("error", () => socket.destroy());
      socket.on("close", () => underWay.set(address, (underWay.get(address) ?? 0) - 1));
    });
    server.once("error", reject);
    server.listen({ port: 0, host: address, backlog: 2_048 }, () => {
      resolve(`http://${address}:${(server.address() as AddressInfo).port}/hangs`);
    });
  });
}

serveProgram({
  /** URLs of `count` APIs. */
  listen: ({ count }: { count: number }) =>
    Promise.all(Array.from({ length: count }, (_, index) => listen(`127.0.0.${index + 2}`))),
  /** Since it was asked last: how much our service let itself be held up. */
  takeFigures: () => {
    const figures = { calls, underWay: sum(underWay), mostUnderWay: sum(mostUnderWay) };
    calls = 0;
    for (const [address, count] of underWay) mostUnderWay.set(address, count);
    return figures;
  },
});

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0);
}
