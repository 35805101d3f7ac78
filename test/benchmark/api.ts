import { serviceNames } from "../../deploy/development/service-process.ts";
import { OperatorClient } from "../support/clients.ts";
import { type LoadFigures, LoadGenerator } from "./api-load.ts";
import type { Bench, Row } from "./bench.ts";
import { readUsage } from "./measure/process-usage.ts";
import type { RowResult } from "./measure/report.ts";
import { median, quantile, ratios } from "./measure/statistics.ts";
import type { Figure } from "./measure/verdict.ts";
import { MetadataStub } from "./programs/metadata-stub.ts";
import { startProgram } from "./programs/program.ts";
import { type BenchProject, Stage } from "./stage.ts";

const projectCount = 100;
const tokensOfEach = 1_000;
const connections = 32;
const seconds = 5;
const settleSeconds = 3;
/** Of its own maximum: where the latency is looked at. */
const loadShare = 0.7;
const warmUps = 2;

type Kind = "POST" | "GET";
const kinds: readonly Kind[] = ["POST", "GET"];
type Side = "service" | "bare server";
const sides: readonly Side[] = ["service", "bare server"];

/** How many requests the ingress takes, and how long they wait when it is not at its limit. */
export const row: Row = {
  name: "api",
  title: `signed POST of ${tokensOfEach} ids and signed GET of ${projectCount} projects with API keys, splitter stopped: requests a second against a bare Koa server with raw drivers; latency at ${loadShare} of the maximum`,
  run: measure,
};

/** One project's requests, signed for the next five minutes, as they go over the wire. */
interface Signing {
  readonly project: BenchProject;
  readonly apiKey: string;
  readonly refreshId: string;
}

interface Play {
  readonly generator: LoadGenerator;
  readonly ports: Readonly<Record<Side, number>>;
  readonly pids: Readonly<Record<Side, number>>;
  readonly signings: readonly Signing[];
}

/** What came of one kind of request, round by round. */
interface KindFigures {
  readonly perSecond: Readonly<Record<Side, number[]>>;
  /** Each at its own share of the load. */
  readonly p99Ms: Readonly<Record<Side, number[]>>;
  /** Of the servers' processes, for all measured requests together. */
  readonly cost: Readonly<Record<Side, { cpuMs: number; requests: number }>>;
  busiestGenerator: number;
}

async function measure(bench: Bench): Promise<RowResult> {
  const play = await prepare(bench);
  const figures = { POST: noFigures(), GET: noFigures() };
  for (let round = -warmUps; round < bench.rounds; round++) {
    for (const kind of kinds) await measureKind(bench, play, { kind, round, figures: figures[kind] });
  }
  return resultOf(figures);
}

function noFigures(): KindFigures {
  const nothing = () => ({ cpuMs: 0, requests: 0 });
  return {
    perSecond: { service: [], "bare server": [] },
    p99Ms: { service: [], "bare server": [] },
    cost: { service: nothing(), "bare server": nothing() },
    busiestGenerator: 0,
  };
}

async function measureKind(
  bench: Bench,
  { generator, ports, pids, signings }: Play,
  { kind, round, figures }: { kind: Kind; round: number; figures: KindFigures },
): Promise<void> {
  const requests = await wire(kind, signings);
  for (const side of sides) {
    bench.turn(`${kind} to the ${side}`, round);
    await generator.aim({ port: ports[side], requests });
    const saturated = await saturate(generator, pids[side]);
    if (round < 0) continue;
    figures.perSecond[side].push(saturated.answered / saturated.seconds);
    figures.cost[side].cpuMs += saturated.cpuMs;
    figures.cost[side].requests += saturated.answered;
    figures.busiestGenerator = Math.max(figures.busiestGenerator, saturated.cpuShare);
  }
  if (round < 0) return;
  for (const side of sides) {
    bench.turn(`${kind} to the ${side} at ${loadShare} of its maximum`, round);
    await generator.aim({ port: ports[side], requests });
    const perSecond = loadShare * median(figures.perSecond[side]);
    // Not counted, as before the other measurements: it has been idle, and Cassandra still stores what the other one wrote.
    await generator.arrive({ perSecond, seconds: settleSeconds });
    figures.p99Ms[side].push(quantile((await generator.arrive({ perSecond, seconds })).latenciesMs, 0.99));
  }
}

function resultOf(figures: Readonly<Record<Kind, KindFigures>>): RowResult {
  const busiest = Math.max(...kinds.map((kind) => figures[kind].busiestGenerator));
  return {
    figures: kinds.flatMap((kind) => judged(kind, figures[kind])),
    usage: {},
    notes: [
      ...kinds.flatMap((kind) => sides.map((side) => told(kind, side, figures[kind]))),
      `the load comes from ${connections} connections, signed beforehand, from a process that uses at most ${Math.round(100 * busiest)} % of its processor; for the latency it arrives by chance (Poisson) and counts from when it was due`,
      "both recover the signer, look up key, collection and project, take a place in two limits in Redis, wait for an acknowledged record and write four rows; the bare server validates nothing, logs nothing, measures nothing and sends each record by itself",
    ],
    ...(busiest > 0.9 ? { voidReason: "the load generator used up its processor" } : {}),
  };
}

function judged(kind: Kind, { perSecond, p99Ms }: KindFigures): Figure[] {
  const ofBare = ratios(perSecond.service, perSecond["bare server"]);
  return [
    { name: `${kind} of the bare server`, direction: "at least", goal: 0.7, samples: ofBare },
    { name: `${kind} p99`, direction: "at most", goal: 50, unit: "ms", samples: p99Ms.service },
  ];
}

function told(kind: Kind, side: Side, { perSecond, cost, p99Ms }: KindFigures): string {
  const micros = Math.round((cost[side].cpuMs * 1_000) / Math.max(1, cost[side].requests));
  const listed = (values: readonly number[]) => values.map((value) => Math.round(value)).join(", ");
  return `${kind} to the ${side}, a second: ${listed(perSecond[side])}; ${micros} µs of its CPU each; p99 at ${loadShare} of that: ${listed(p99Ms[side])} ms`;
}

async function prepare(bench: Bench): Promise<Play> {
  const stage = await Stage.open(bench);
  bench.doing(`registering ${projectCount} projects`);
  const stub = await bench.own(MetadataStub.start({ cpu: 0 }), (started) => started.stop());
  const url = await stub.profile("fast", { latencyMs: 0, bodyBytes: 1_024 });
  const projects = await stage.createProjects(Array.from({ length: projectCount }, () => ({ url })));
  const operator = new OperatorClient(stage.system.registryUrl);
  const key = { name: "benchmark", requests_per_second: 100_000 };
  const apiKeys = await Promise.all(projects.map(({ projectId }) => operator.createApiKey(projectId, key)));
  // Queried refreshes have come to their end, so that they have all their rows.
  const refreshes = await Promise.all(projects.map((project) => stage.request(project, stage.freshTokenIds(1))));
  await stage.completed(bench, refreshes);
  for (const name of serviceNames) if (name !== "ingress") await stage.system.service(name).stop();

  const { env } = stage.system.environment;
  const bare = await bench.own(Promise.resolve(startProgram(new URL("api-bare-program.ts", import.meta.url))), (started) =>
    started.stop(),
  );
  const generator = await bench.own(Promise.resolve(new LoadGenerator({ cpu: 0 })), (started) => started.stop());
  return {
    generator,
    ports: { service: Number(new URL(stage.system.ingressUrl).port), "bare server": await bare.call<number>("listen", env) },
    pids: { service: stage.system.service("ingress").pid, "bare server": bare.pid },
    signings: projects.map((project, index) => ({
      project,
      apiKey: apiKeys[index] ?? "",
      refreshId: refreshes[index]?.refreshId ?? "",
    })),
  };
}

interface Saturated extends LoadFigures {
  /** Of the server's process. */
  readonly cpuMs: number;
}

/** A short run first that does not count: connections, code and caches of either side are warm then. */
async function saturate(generator: LoadGenerator, pid: number): Promise<Saturated> {
  await generator.saturate({ connections, seconds: 1 });
  const cpuMs = () => readUsage(pid)?.cpuMs ?? 0;
  const before = cpuMs();
  const figures = await generator.saturate({ connections, seconds });
  return { ...figures, cpuMs: cpuMs() - before };
}

/** Ids as collections have them, of one to seven digits; each project asks for the same ones again and again. */
async function wire(kind: Kind, signings: readonly Signing[]): Promise<string[]> {
  return Promise.all(
    signings.map(async ({ project, apiKey, refreshId }, index) => {
      const signed = { host: "127.0.0.1", "x-api-key": apiKey, ...(await project.owner.wallet.headers()) };
      if (kind === "GET") return message(`GET /v1/metadata-refreshes/${refreshId}`, signed, "");
      const tokenIds = Array.from({ length: tokensOfEach }, (_, ordinal) => String((ordinal * (index + 1) * 7_919) % 9_999_991));
      const body = JSON.stringify({ collection_address: project.collection, token_ids: tokenIds });
      return message("POST /v1/metadata-refreshes", { ...signed, "content-type": "application/json" }, body);
    }),
  );
}

function message(line: string, headers: Readonly<Record<string, string>>, body: string): string {
  const length = body === "" ? {} : { "content-length": String(body.length) };
  const lines = Object.entries({ ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}
