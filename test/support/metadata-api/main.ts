import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import process from "node:process";
import { openCallFile } from "./call-file.ts";
import { createControl } from "./control.ts";
import { createProgram, type ProgramOptions } from "./options.ts";
import { Simulator } from "./simulator.ts";

await createProgram(start).parseAsync();

/** Runs until it is interrupted, or until the process that forked it has gone. */
async function start({ port, controlPort, logCalls, logFile, settings }: ProgramOptions): Promise<void> {
  const file = logFile === undefined ? undefined : await openCallFile(logFile).catch((error: Error) => fail(error));
  const simulator = new Simulator({ settings, logCalls, ...(file === undefined ? {} : { onEnded: file.add }) });
  const control = createControl(simulator);
  await simulator.listen(port).catch((error: Error) => fail(error));
  await listen(control, controlPort).catch((error: Error) => fail(error));
  const stop = async () => {
    await simulator.close();
    control.close();
    control.closeAllConnections();
    await file?.close();
    process.exit(0);
  };
  for (const reason of ["SIGINT", "SIGTERM", "disconnect"]) process.once(reason, () => void stop());
  // Last: who has read it may interrupt at once.
  announce({
    url: `http://127.0.0.1:${simulator.port}/metadata`,
    controlUrl: `http://127.0.0.1:${(control.address() as AddressInfo).port}`,
  });
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}

/** Where it is: for a parent process as a message, for a person as text. */
function announce(addresses: { url: string; controlUrl: string }): void {
  if (process.send) process.send(addresses);
  else process.stdout.write(`Metadata API  ${addresses.url}\ncontrol       ${addresses.controlUrl}\n`);
}

function fail(error: Error): never {
  process.stderr.write(`error: ${error.message}\n`);
  process.exit(1);
}
