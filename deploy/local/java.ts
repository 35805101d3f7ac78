import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { findInPath, isExecutable } from "./processes.ts";

export interface Java {
  readonly home: string;
  readonly command: string;
  readonly major: number;
}

/** The Java runtimes of this machine: JAVA_HOME first, then PATH, then the folder where Linux distributions put them. */
export function installedJavas(): Java[] {
  const homes = [process.env.JAVA_HOME, homeOfPath(), ...systemHomes()].filter((home) => home !== undefined);
  const unique = new Set(homes.flatMap((home) => realPath(home) ?? []));
  return [...unique].flatMap((home) => javaAt(home) ?? []);
}

export function javaAt(home: string): Java | undefined {
  const command = join(home, "bin/java");
  if (!isExecutable(command)) return undefined;
  const major = majorOf(versionOf(home, command));
  return major === undefined ? undefined : { home, command, major };
}

/** "17.0.15" is 17, "1.8.0_412" is 8. */
function majorOf(version: string): number | undefined {
  const match = /^(?:1\.)?(\d+)/.exec(version);
  return match === null ? undefined : Number(match[1]);
}

/** Every JDK since 9 says its version in `release`; asking the program itself costs a JVM start. */
function versionOf(home: string, command: string): string {
  try {
    const version = /^JAVA_VERSION="(.+)"$/m.exec(readFileSync(join(home, "release"), "utf8"))?.[1];
    if (version !== undefined) return version;
  } catch {
    // no such file: ask
  }
  const asked = spawnSync(command, ["-XshowSettings:properties", "-version"], { encoding: "utf8" });
  return /java\.version = (.+)/.exec(asked.stderr ?? "")?.[1] ?? "";
}

function homeOfPath(): string | undefined {
  const command = findInPath("java");
  const real = command === undefined ? undefined : realPath(command);
  return real === undefined ? undefined : dirname(dirname(real));
}

function systemHomes(): string[] {
  const folder = "/usr/lib/jvm";
  try {
    return readdirSync(folder)
      .sort()
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
