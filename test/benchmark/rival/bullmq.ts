import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { execute } from "../../../deploy/local/execute.ts";
import type { Reporter } from "../../../deploy/local/reporter.ts";

/**
 * What the rival uses of BullMQ, written down here: its own types are there only after its installation, and the types of the
 * project are checked without it.
 */
export interface BullMq {
  readonly Queue: new (name: string, options: QueueOptions) => Queue;
  readonly Worker: new <T>(name: string, process: (job: Job<T>) => Promise<unknown>, options: WorkerOptions) => Worker;
}

export interface Job<T> {
  readonly data: T;
}

export interface Queue {
  addBulk(jobs: readonly { name: string; data: unknown; opts?: JobOptions }[]): Promise<unknown>;
  add(name: string, data: unknown, options?: JobOptions): Promise<unknown>;
  obliterate(options: { force: boolean }): Promise<void>;
  close(): Promise<void>;
}

export interface Worker {
  waitUntilReady(): Promise<unknown>;
  on(event: "error" | "failed", listener: (...details: unknown[]) => void): unknown;
  close(): Promise<void>;
}

interface JobOptions {
  readonly attempts?: number;
  readonly backoff?: { readonly type: "exponential"; readonly delay: number };
  readonly removeOnComplete?: boolean;
  readonly removeOnFail?: boolean;
}

interface QueueOptions {
  readonly connection: Readonly<Record<string, unknown>>;
  readonly prefix: string;
  readonly defaultJobOptions?: JobOptions;
}

interface WorkerOptions {
  readonly connection: Readonly<Record<string, unknown>>;
  readonly prefix: string;
  readonly concurrency: number;
}

const manifest = join(import.meta.dirname, "package.json");
/** Outside the sources: what is installed there is neither type-checked nor linted nor committed. */
const folder = join(import.meta.dirname, "../../../.local/rival");

/** The installed package. */
export function loadBullMq(): BullMq {
  return createRequire(join(folder, "package.json"))("bullmq") as BullMq;
}

/** Installs what package.json of this folder pins, unless that is done already. */
export async function installRival(reporter: Reporter): Promise<void> {
  if (await isInstalled()) return;
  await mkdir(folder, { recursive: true });
  await copyFile(manifest, join(folder, "package.json"));
  const log = join(folder, "install.log");
  // `ci` and a lock file fail: optional packages of BullMQ for other platforms are not to be had everywhere.
  const list = ["install", "--prefix", folder, "--no-package-lock", "--no-audit", "--no-fund"];
  const installed = execute({ file: "npm", arguments: list, log });
  const code = await reporter.during(() => "installing the rival, BullMQ, with npm,", installed);
  if (code !== 0) throw new Error(`npm could not install the rival; its output is in ${log}`);
}

async function isInstalled(): Promise<boolean> {
  const { dependencies } = JSON.parse(await readFile(manifest, "utf8")) as { dependencies: Record<string, string> };
  const versions = Object.entries(dependencies).map(async ([name, version]) => (await versionOf(name)) === version);
  return (await Promise.all(versions)).every((same) => same);
}

async function versionOf(name: string): Promise<string | undefined> {
  const file = join(folder, "node_modules", name, "package.json");
  if (!existsSync(dirname(file))) return undefined;
  return (JSON.parse(await readFile(file, "utf8")) as { version: string }).version;
}
