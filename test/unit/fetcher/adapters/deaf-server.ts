import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { waitFor } from "../../../support/wait-for.ts";

/** A port that takes no more connections: the kernel's queue of it is full, and its program asleep. */
export interface DeafServer {
  readonly port: number;
  close(): Promise<unknown>;
}

const program = `
  const { parentPort, workerData } = require("node:worker_threads");
  const server = require("node:net").createServer();
  server.listen({ port: 0, host: workerData.host, backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    Atomics.wait(new Int32Array(workerData.awake), 0, 0);
  });`;

export async function startDeafServer(host: string): Promise<DeafServer> {
  const awake = new SharedArrayBuffer(4);
  const worker = new Worker(program, { eval: true, workerData: { host, awake } });
  const [port] = (await once(worker, "message")) as [number];
  const sockets: Socket[] = [];
  const knock = () => {
    const socket = connect(port, host);
    socket.on("error", () => {});
    sockets.push(socket);
    return socket.connecting;
  };
  // Full when a few of those that knocked are still waiting at the door.
  await waitFor("a full queue", knock, () => sockets.filter(({ connecting }) => connecting).length > 3);
  return {
    port,
    close: () => {
      for (const socket of sockets) socket.destroy();
      Atomics.store(new Int32Array(awake), 0, 1);
      Atomics.notify(new Int32Array(awake), 0);
      return worker.terminate();
    },
  };
}
