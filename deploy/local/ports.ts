import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { codeOf, StackProblem } from "./problem.ts";
import { commandLine, listenerOf } from "./processes.ts";
import { host, type PortName } from "./settings.ts";

export interface NamedPort {
  readonly name: PortName;
  readonly port: number;
}

/** Throws a `StackProblem` for the first port that somebody already listens on. */
export async function requireFree(server: string, ports: readonly NamedPort[]): Promise<void> {
  for (const { name, port } of ports) {
    const error = await tryToListen(port);
    if (error === undefined) continue;
    if (error === "EACCES") throw new StackProblem(`${server} may not listen on port ${port}; set ${name} to one above 1023`);
    throw new StackProblem(
      `${server} needs port ${port}, which is taken by ${holder(port)}; stop that, or set ${name} to another port`,
    );
  }
}

/**
 * That many different free ports. They are free now: nothing keeps them so.
 * All lie below 32768, where Linux begins to take the ports of outgoing connections: a client that goes on connecting to a
 * stopped local server may otherwise be given that very port, connect to itself, and keep the server from coming back.
 */
export async function freePorts(count: number): Promise<number[]> {
  const [lowest, highest] = [15_000, 32_767];
  const found = new Set<number>();
  while (found.size < count) {
    const port = randomInt(lowest, highest + 1);
    if ((await tryToListen(port)) === undefined) found.add(port);
  }
  return [...found];
}

export async function isFree(port: number): Promise<boolean> {
  return (await tryToListen(port)) === undefined;
}

async function tryToListen(port: number): Promise<string | undefined> {
  try {
    const server = await listen(port);
    await new Promise((closed) => server.close(closed));
    return undefined;
  } catch (error) {
    return codeOf(error) ?? "unknown";
  }
}

function listen(port: number) {
  return new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, host, () => resolve(server));
  });
}

function holder(port: number): string {
  const pid = listenerOf(port);
  if (pid === undefined) return "another process";
  const command = commandLine(pid);
  return `process ${pid} (${command.length > 60 ? `${command.slice(0, 60)}...` : command})`;
}
