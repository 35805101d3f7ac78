import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findViolations } from "./support/architecture.ts";

const projectFolder = new URL("..", import.meta.url);

/** Paths that may break a rule. Empty, and meant to stay so. */
const exceptions: readonly string[] = [];

it("keeps the import directions and homes of the design, without an exception", () => {
  const paths = globSync("{services,deploy,test}/**/*.ts", { cwd: projectFolder.pathname }).filter(
    (path) => !exceptions.includes(path),
  );
  expect(paths.length).toBeGreaterThan(50);
  const sources = new Map(paths.map((path) => [path, readFileSync(new URL(path, projectFolder), "utf8")]));
  expect(findViolations(sources)).toEqual([]);
});

describe("the check finds", () => {
  const sample = (files: Record<string, string>) => findViolations(new Map(Object.entries(files)));

  it.each<[string, string, string, string]>([
    ["a service in a service", "services/fetcher/run.ts", `import { a } from "../ingress/run.ts";`, "of another service"],
    [
      "a type of a service in a service",
      "services/fetcher/run.ts",
      `import type { A } from "../ingress/config.ts";`,
      "of another",
    ],
    ["a service in common", "services/common/http/a.ts", `export * from "../../ingress/core/a.ts";`, "of a service"],
    [
      "a test in a service",
      "services/fetcher/run.ts",
      `import { a } from "../../test/support/a.ts";`,
      "not part of the services",
    ],
    ["an adapter in core", "services/fetcher/core/a.ts", `import type { B } from "../adapters/b.ts";`, "core imports nothing"],
    ["an adapter in routes", "services/ingress/routes/a.ts", `import { b } from "../adapters/b.ts";`, "as arguments"],
    ["run.ts in an adapter", "services/ingress/adapters/a.ts", `import { run } from "../run.ts";`, "run.ts imports them"],
    [
      "a second place that joins core and adapters",
      "services/fetcher/wire.ts",
      `import { a } from "./core/a.ts"; import { b } from "./adapters/b.ts";`,
      "only run.ts",
    ],
    ["kafkajs in an adapter", "services/fetcher/adapters/a.ts", `import type { Kafka } from "kafkajs";`, "imports kafkajs"],
    [
      "the registry client in another folder of common",
      "services/common/messages/a.ts",
      `import { SchemaRegistry } from "@kafkajs/confluent-schema-registry";`,
      "imports @kafkajs/confluent-schema-registry",
    ],
    [
      "a driver's inner file",
      "services/fetcher/run.ts",
      `const x = createRequire(import.meta.url)("undici/lib/a.js");`,
      "imports undici",
    ],
    ["a driver in run.ts", "services/fetcher/run.ts", `import { Pool } from "undici";`, "imports undici"],
    ["a driver loaded late", "services/fetcher/run.ts", `export const a = () => import("ioredis");`, "imports ioredis"],
    ["a driver in routes", "services/ingress/routes/a.ts", `import { Redis } from "ioredis";`, "imports ioredis"],
    ["koa in run.ts", "services/ingress/run.ts", `import Koa from "koa";`, "imports koa"],
    [
      "a driver beside common's folders",
      "services/common/clock.ts",
      `import { Client } from "cassandra-driver";`,
      "imports cassandra-driver",
    ],
    ["a part of Node in core", "services/fetcher/core/a.ts", `import { createHash } from "node:crypto";`, "core is pure"],
    ["a package in core", "services/fetcher/core/a.ts", `import { v7 } from "uuid";`, "core is pure"],
    ["the clock in core", "services/fetcher/core/a.ts", "export const a = () => Date.now();", "uses Date.now"],
    ["the clock in a date", "services/fetcher/core/a.ts", "export const a = () => new Date();", "uses new Date()"],
    ["the monotonic clock", "services/fetcher/core/a.ts", "export const a = performance.now();", "uses performance"],
    ["chance in core", "services/fetcher/core/a.ts", "export const a = (random = Math.random) => random();", "uses Math.random"],
    ["a timer in core", "services/fetcher/core/a.ts", "setTimeout(() => {}, 5);", "uses setTimeout"],
    ["the network in core", "services/fetcher/core/a.ts", `export const a = fetch("x");`, "uses fetch"],
    ["process in config.ts", "services/fetcher/config.ts", "export const a = process.env.A;", "touches process"],
    ["process by its module", "services/fetcher/run.ts", `import process from "node:process";`, "touches process"],
    ["a home called utils", "services/common/utils/a.ts", "export const a = 1;", "says nothing"],
    ["a file called helpers", "test/support/helpers.ts", "export const a = 1;", "says nothing"],
    ["a default export", "deploy/a.ts", "export default 1;", "default export"],
    ["a long file", "services/common/http/a.ts", "export {};\n".repeat(401), "more than 400 lines"],
  ])("%s", (_what, path, source, problem) => {
    const found = sample({ [path]: source });
    expect(found).not.toEqual([]);
    expect(found.join("\n")).toContain(problem);
    expect(found.every((sentence) => sentence.startsWith(path))).toBe(true);
  });

  it("what a pure-looking import of core loads behind it", () => {
    const found = sample({
      "services/fetcher/core/a.ts": `import { b } from "../../common/messages/b.ts"; import type { C } from "../../common/kafka/c.ts";`,
      "services/common/messages/b.ts": `import { d } from "./d.ts";`,
      "services/common/messages/d.ts": `import { readFileSync } from "node:fs";`,
      "services/common/kafka/c.ts": `import { Kafka } from "kafkajs";`,
    });
    const way = "services/fetcher/core/a.ts > services/common/messages/b.ts > services/common/messages/d.ts";
    expect(found).toEqual([`${way} imports node:fs: core is pure`]);
  });
});

it("lets the intended layout pass", () => {
  const intended = {
    "services/fetcher/main.ts": `import process from "node:process"; import { run } from "./run.ts"; run(process.env);`,
    "services/fetcher/run.ts": `import { a } from "./core/a.ts"; import { b } from "./adapters/b.ts"; export const run = () => b(a);`,
    "services/fetcher/core/a.ts": `import { z } from "zod"; import type { P } from "../../common/kafka/p.ts";
      import { m } from "../../common/messages/m.ts"; interface X { process: number; fetch(): void }
      export const a = (nowMs: number, x: X) => ({ at: new Date(nowMs), fetch: x.fetch, process: x.process, z, m });`,
    "services/fetcher/adapters/b.ts": `import { Pool } from "undici"; import { a } from "../core/a.ts"; export const b = [Pool, a];`,
    "services/ingress/routes/r.ts": `import Router from "@koa/router"; import type { A } from "../adapters/a.ts"; export const r = Router;`,
    "services/common/kafka/p.ts": `import { Kafka } from "kafkajs"; export type P = Kafka;`,
    "services/common/messages/m.ts": "export const m = () => setTimeout(() => {}, 1);",
    "test/vitest.config.ts": "export default {};",
  };
  expect(findViolations(new Map(Object.entries(intended)))).toEqual([]);
});
