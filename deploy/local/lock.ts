import { createHash } from "node:crypto";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "./problem.ts";
import type { Reporter } from "./reporter.ts";

/**
 * Runs `work` while nobody else works on the same folder: one stack command or test at a time.
 * The lock is a socket name of Linux' abstract namespace. The kernel frees it when its holder dies, however it dies,
 * so there is no stale lock to recognise and no race in removing one.
 */
export async function exclusively<Result>(folder: string, reporter: Reporter, work: () => Promise<Result>): Promise<Result> {
  const lock = await acquire(folder, reporter);
  try {
    return await work();
  } finally {
    await new Promise((released) => lock.close(released));
  }
}

async function acquire(folder: string, reporter: Reporter): Promise<Server> {
  // The kernel allows 107 bytes, a path may be longer.
  const name = `\0local-stack-${createHash("sha256").update(folder).digest("hex")}`;
  let told = false;
  for (;;) {
    const lock = await tryToHold(name);
    if (lock !== undefined) return lock;
    if (!told) reporter.line(`waiting: another stack command is at work in ${folder}`);
    told = true;
    await sleep(200);
  }
}

function tryToHold(name: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const lock = createServer();
    lock.once("error", (error) => (codeOf(error) === "EADDRINUSE" ? resolve(undefined) : reject(error)));
    lock.listen(name, () => resolve(lock));
  });
}
