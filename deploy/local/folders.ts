import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, StackProblem } from "./problem.ts";
import type { ServerName, StackSettings } from "./settings.ts";

export const dataFolder = ({ home }: StackSettings, server: ServerName) => join(home, "data", server);
export const configurationFile = ({ home }: StackSettings, name: string) => join(home, "conf", name);
export const logFile = ({ home }: StackSettings, name: string) => join(home, "log", `${name}.log`);
export const recordFile = ({ home }: StackSettings, server: ServerName) => join(home, "run", `${server}.json`);

/** Stacks that tests start for themselves live inside the home of the stack they belong to, so that its `down` finds them. */
export const privateStacksName = "private";
export const privateStacksFolder = (home: string) => join(home, privateStacksName);

/** Makes a folder; when that is not possible the problem names the setting that moves it. */
export function makeFolder(folder: string, setting: "STACK_HOME" | "STACK_PACKAGES"): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new StackProblem(`the folder ${folder} cannot be made (${codeOf(error)}); set ${setting} to one that can be written`);
  }
}

/** Writes a whole file or none of it: whoever reads meanwhile sees the old one. */
export function writeWhole(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, text);
  renameSync(draft, file);
}
