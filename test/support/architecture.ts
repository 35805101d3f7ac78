import { posix } from "node:path";
import { parseAst } from "vitest/node";

/** Sources by path from the project's folder, such as `services/splitter/run.ts`. */
export type Sources = ReadonlyMap<string, string>;

interface Import {
  readonly target: string;
  /** Of types alone: erased when the file is loaded. */
  readonly typeOnly: boolean;
}

interface SourceFile {
  readonly path: string;
  readonly imports: readonly Import[];
  /** Names of the surroundings that are used: `process`, `Date.now`, `new Date()`, `Math.random`, `setTimeout`, ... */
  readonly ambient: ReadonlySet<string>;
  readonly hasDefaultExport: boolean;
  readonly lineCount: number;
}

const largestFile = 400;
const homesWithoutName = /^(utils?|helpers?|lib|misc)$/;

const kafkaPackages = ["kafkajs", "@kafkajs/confluent-schema-registry"];
const routerPackages = ["koa", "@koa/router"];
const drivers = [
  ...kafkaPackages,
  ...routerPackages,
  "cassandra-driver",
  "ioredis",
  "undici",
  "rate-limiter-flexible",
  "secp256k1",
];
/** Pure packages: they keep no connection, ask no clock and throw no dice. */
const corePackages = ["zod", "lru-cache", "ipaddr.js"];
const clockAndChance = [
  "Date.now",
  "new Date()",
  "Math.random",
  "performance",
  "process",
  "crypto",
  "fetch",
  "console",
  "setTimeout",
  "setInterval",
  "setImmediate",
];

/** Everything that breaks the import directions and homes of README, Layout, one sentence each, sorted. */
export function findViolations(sources: Sources): string[] {
  const files = new Map([...sources].map(([path, text]) => [path, parseFile(path, text)]));
  const all = [...files.values()];
  const ofServices = all.filter(({ path }) => path.startsWith("services/"));
  return [
    ...all.flatMap(homeProblems),
    ...ofServices.flatMap(directionProblems),
    ...ofServices.flatMap(driverProblems),
    ...ofServices.filter(isCore).flatMap((file) => purityProblems(file, files)),
    ...ofServices.filter(touchesProcess).map(({ path }) => `${path} touches process: only main.ts does`),
  ].sort();
}

function homeProblems({ path, hasDefaultExport, lineCount }: SourceFile): string[] {
  const problems: string[] = [];
  const nameless = path.split("/").find((part) => homesWithoutName.test(part.replace(/\..*$/, "")));
  if (nameless !== undefined) problems.push(`${path} lives in ${nameless}, which says nothing`);
  if (hasDefaultExport && !path.endsWith(".config.ts")) problems.push(`${path} has a default export`);
  if (lineCount > largestFile) problems.push(`${path} has more than ${largestFile} lines`);
  return problems;
}

function directionProblems({ path, imports }: SourceFile): string[] {
  const home = placeOf(path);
  const places = imports.map((entry) => ({ ...entry, ...placeOf(entry.target) }));
  const own = places.filter(({ service }) => service === home.service);
  const foreign = places.filter(({ target, service }) => target.startsWith("services/") && service !== home.service);
  const outside = places.filter(({ target }) => /^(deploy|test)\//.test(target));
  return [
    ...foreign
      .filter(({ service }) => service !== "common")
      .map(({ target }) => `${path} imports ${target} of ${home.service === "common" ? "a service" : "another service"}`),
    ...outside.map(({ target }) => `${path} imports ${target}, which is not part of the services`),
    ...own.flatMap((entry) => layerProblem(path, entry)),
    ...joinProblem(path, own),
  ];
}

/**
 * core stands alone. adapters and routes may use core's types and its functions, which are pure; routes get adapters as
 * arguments. What everybody needs to run is put together in run.ts.
 */
function layerProblem(path: string, { target, layer, typeOnly }: Import & Place): string[] {
  const from = placeOf(path).layer;
  if (from === "core" && layer !== "core") return [`${path} imports ${target}: core imports nothing of the rest of its service`];
  if (from === "routes" && layer === "adapters" && !typeOnly)
    return [`${path} imports ${target}: routes get adapters as arguments`];
  if (["adapters", "routes"].includes(from) && target.endsWith("/run.ts"))
    return [`${path} imports ${target}: run.ts imports them`];
  return [];
}

function joinProblem(path: string, own: readonly (Import & Place)[]): string[] {
  const uses = (layer: string) => own.some((entry) => entry.layer === layer && !entry.typeOnly);
  const from = placeOf(path);
  const joins = from.service !== "common" && from.layer === "" && uses("core") && uses("adapters");
  return joins && !path.endsWith("/run.ts") ? [`${path} joins core and adapters: only run.ts does`] : [];
}

function driverProblems({ path, imports }: SourceFile): string[] {
  const { service, layer } = placeOf(path);
  const allowed = (driver: string): boolean => {
    if (kafkaPackages.includes(driver)) return path.startsWith("services/common/kafka/");
    if (routerPackages.includes(driver) && layer === "routes") return true;
    return layer === "adapters" || (service === "common" && path.split("/").length > 3);
  };
  return imports
    .filter(({ target }) => drivers.includes(target) && !allowed(target))
    .map(({ target }) => `${path} imports ${target}`);
}

function purityProblems(file: SourceFile, files: ReadonlyMap<string, SourceFile>): string[] {
  const packages = file.imports.filter(({ target }) => !target.startsWith("services/") && !corePackages.includes(target));
  const used = clockAndChance.filter((name) => file.ambient.has(name));
  return [
    ...packages.map(({ target }) => `${file.path} imports ${target}: core is pure`),
    ...used.map((name) => `${file.path} uses ${name}: core is pure`),
    ...impureWays(file, files),
  ];
}

/** A pure-looking import of common may load a driver or a part of Node behind it: follow what is loaded. */
function impureWays(start: SourceFile, files: ReadonlyMap<string, SourceFile>): string[] {
  const isImpure = (target: string) => target.startsWith("node:") || drivers.includes(target);
  const seen = new Set([start.path]);
  const queue = [{ file: start, way: start.path }];
  const problems: string[] = [];
  for (const { file, way } of queue) {
    for (const { target } of file.imports.filter(({ typeOnly }) => !typeOnly)) {
      if (isImpure(target) && file !== start) problems.push(`${way} imports ${target}: core is pure`);
      const next = files.get(target);
      if (next === undefined || seen.has(target)) continue;
      seen.add(target);
      queue.push({ file: next, way: `${way} > ${target}` });
    }
  }
  return problems;
}

const isCore = ({ path }: SourceFile) => placeOf(path).layer === "core";
const touchesProcess = ({ path, ambient, imports }: SourceFile) =>
  !path.endsWith("/main.ts") && (ambient.has("process") || imports.some(({ target }) => target === "node:process"));

interface Place {
  /** Folder under services; empty for anything else. */
  readonly service: string;
  /** Folder under the service; empty for its own files, and in common. */
  readonly layer: string;
}

function placeOf(path: string): Place {
  const [root, service = "", layer = "", file] = path.split("/");
  if (root !== "services") return { service: "", layer: "" };
  return { service, layer: service === "common" || file === undefined ? "" : layer };
}

interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

function parseFile(path: string, text: string): SourceFile {
  const program: unknown = parseAst(text, { lang: "ts" });
  if (!isNode(program)) throw new Error(`${path} cannot be parsed`);
  const imports: Import[] = [];
  const ambient = new Set<string>();
  let hasDefaultExport = false;
  const importOf = (source: unknown, typeOnly: boolean) => {
    const target = (source as { value?: unknown } | null | undefined)?.value;
    if (typeof target === "string") imports.push({ target: resolveTarget(path, target), typeOnly });
  };
  walk(program, (node) => {
    if (/^(Import|ExportNamed|ExportAll)Declaration$/.test(node.type)) {
      importOf(node.source, node.importKind === "type" || node.exportKind === "type");
    }
    if (node.type === "ImportExpression") importOf(node.source, false);
    // createRequire(...)("x"), with which a driver's inner files are reached.
    if (node.type === "CallExpression" && isCallOf("createRequire", node.callee)) importOf(firstOf(node), false);
    if (node.type === "ExportDefaultDeclaration") hasDefaultExport = true;
    for (const name of ambientNames(node)) ambient.add(name);
  });
  return { path, imports, ambient, hasDefaultExport, lineCount: text.trimEnd().split("\n").length };
}

const isCallOf = (name: string, node: unknown) => isNode(node) && node.type === "CallExpression" && nameOf(node.callee) === name;
const firstOf = (call: Node): unknown => (call.arguments as readonly unknown[])[0];

function resolveTarget(path: string, target: string): string {
  if (target.startsWith(".")) return posix.join(posix.dirname(path), target);
  // An inner file counts as its package: kafkajs/src/network/... is kafkajs.
  const name = target.split("/");
  return target.startsWith("node:") ? target : name.slice(0, target.startsWith("@") ? 2 : 1).join("/");
}

function ambientNames(node: Node): string[] {
  if (node.type === "Identifier") return [String(node.name)];
  if (node.type === "NewExpression" && nameOf(node.callee) === "Date" && firstOf(node) === undefined) return ["new Date()"];
  return node.type === "MemberExpression" && node.computed !== true ? [`${nameOf(node.object)}.${nameOf(node.property)}`] : [];
}

const nameOf = (node: unknown): unknown => (node as { name?: unknown } | null)?.name;

/** Visits what is evaluated: no types, and no names that only name a property. */
function walk(node: Node, visit: (node: Node) => void): void {
  if (node.type.startsWith("TS") && !/^TS(As|Satisfies|NonNull)/.test(node.type)) return;
  visit(node);
  const namesProperty = ["MemberExpression", "Property", "PropertyDefinition", "MethodDefinition"].includes(node.type);
  for (const [field, child] of Object.entries(node)) {
    if (namesProperty && node.computed !== true && (field === "property" || field === "key") && node.shorthand !== true) continue;
    for (const entry of Array.isArray(child) ? child : [child]) if (isNode(entry)) walk(entry, visit);
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
