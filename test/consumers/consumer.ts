import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { promisify } from "node:util";

export const languages = ["typescript", "python", "java"] as const;
export type Language = (typeof languages)[number];

/** A token as a consumer holds it. */
export interface HeldToken {
  readonly token_id: string;
  readonly version: number;
  readonly content_hash: string;
  readonly metadata: string;
}

export interface Snapshot {
  readonly tokens: readonly HeldToken[];
  /** Records that were not newer than what was held. */
  readonly discarded: number;
}

export interface Following {
  readonly brokers: string;
  readonly registry: string;
  readonly topic: string;
  readonly collection: string;
}

interface Command {
  readonly file: string;
  readonly arguments: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const here = import.meta.dirname;
const packages = join(here, "../../.local/packages");

/** One of the examples, running. */
export class ExampleConsumer {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  readonly #output: Interface;
  #errors = "";

  static async start(language: Language, following: Following): Promise<ExampleConsumer> {
    return new ExampleConsumer(await commandOf(language), following);
  }

  private constructor(command: Command, following: Following) {
    const options = Object.entries(following).flatMap(([name, value]) => [`--${name}`, value]);
    this.#child = spawn(command.file, [...command.arguments, ...options], { env: { ...process.env, ...command.environment } });
    this.#output = createInterface({ input: this.#child.stdout });
    this.#lines = this.#output[Symbol.asyncIterator]();
    this.#child.stderr.on("data", (bytes: Buffer) => {
      this.#errors += bytes.toString();
    });
    // It may end by itself, with a message, before it is asked.
    this.#child.stdin.on("error", () => undefined);
  }

  /** What it holds once it has read everything that is in the topic now. */
  async snapshot(): Promise<Snapshot> {
    this.#child.stdin.write("snapshot\n");
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the consumer ended: ${this.#errors}`);
    return JSON.parse(value) as Snapshot;
  }

  async stop(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once("close", resolve));
    if (this.#child.exitCode !== null) return;
    this.#child.kill("SIGKILL");
    await gone;
  }
}

async function commandOf(language: Language): Promise<Command> {
  if (language === "typescript")
    return { file: process.execPath, arguments: ["--no-warnings", join(here, "typescript/follow.ts")] };
  if (language === "python") {
    const folder = await fetched("consumer-python", (target) =>
      run("python3", [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--target",
        target,
        "--requirement",
        join(here, "python/requirements.txt"),
      ]),
    );
    return { file: "python3", arguments: [join(here, "python/follow.py")], environment: { PYTHONPATH: folder } };
  }
  const folder = await fetched("consumer-java", async (target) => {
    const pom = ["--file", join(here, "java/pom.xml"), "dependency:copy-dependencies", `-DoutputDirectory=${target}`];
    await run("mvn", ["--quiet", "--batch-mode", ...pom]);
  });
  const compiler = ["org.eclipse.jdt.internal.compiler.batch.Main", "-17", "-nowarn", "-d", join(folder, "classes")];
  await run("java", ["-cp", join(folder, "*"), ...compiler, "-cp", jarsIn(folder), join(here, "java/Follow.java")]);
  return { file: "java", arguments: ["-Xmx128m", "-cp", `${join(folder, "*")}:${join(folder, "classes")}`, "Follow"] };
}

/** Fetched once into a folder that exists only when it is complete. */
async function fetched(name: string, fetch: (target: string) => Promise<unknown>): Promise<string> {
  const folder = join(packages, name);
  if (existsSync(join(folder, ".complete"))) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await fetch(folder);
  writeFileSync(join(folder, ".complete"), "");
  return folder;
}

function jarsIn(folder: string): string {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jar"))
    .map((name) => join(folder, name))
    .join(":");
}

async function run(file: string, list: readonly string[]): Promise<void> {
  try {
    await promisify(execFile)(file, [...list], { maxBuffer: 16 * 1024 * 1024 });
  } catch (error) {
    const { message, stdout = "", stderr = "" } = error as Error & { stdout?: string; stderr?: string };
    throw new Error(`${message}\n${stdout}\n${stderr}`);
  }
}
