import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { nodeEnvironment, nodeFlags } from "../../deploy/development/service-process.ts";
import { loadTopics } from "../../services/common/kafka/topics.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

interface ComposeService {
  image: string;
  command?: string[];
}

const compose: { services: Record<string, ComposeService> } = parse(read("docker-compose.yml"), { merge: true });
const versions = parseEnv(read(".env"));

describe("docker-compose.yml", () => {
  it.each([
    ["kafka", "apache/kafka", "KAFKA_VERSION"],
    ["cassandra", "cassandra", "CASSANDRA_VERSION"],
    ["schema-registry", "apicurio/apicurio-registry", "APICURIO_VERSION"],
    ["redis", "redis", "REDIS_VERSION"],
  ])("takes the version of %s from the pinned file", (service, image, variable) => {
    expect(compose.services[service]?.image).toBe(`${image}:\${${variable}}`);
    expect(versions[variable]).toMatch(/^\d+(\.\d+)+$/);
  });

  it("runs no other image than those four servers and our own", () => {
    const images = new Set(Object.values(compose.services).map((service) => service.image));
    expect([...images].filter((image) => !image.includes("_VERSION}"))).toEqual(["asset-metadata-refresh-service"]);
  });

  it.each(["ingress", "splitter", "fetcher", "aggregator", "registry"])("starts %s from its main.ts", (service) => {
    expect(compose.services[service]?.command).toEqual([`services/${service}/main.ts`]);
  });

  it("creates topics through provisioning alone, from deploy/topics.yaml", () => {
    expect(compose.services.provision?.command).toEqual(["deploy/provision.ts"]);
    expect(read(".dockerignore")).toContain("!deploy/topics.yaml");
    const named = loadTopics().all.filter((topic) => read("docker-compose.yml").includes(topic.baseName));
    expect(named).toEqual([]);
  });
});

/** Every file of ours that a program imports, itself included. */
function importedFrom(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, path = ""] of read(file).matchAll(/from "(\.{1,2}\/[^"]+)"/g)) importedFrom(join(dirname(file), path), seen);
  return seen;
}

describe("deploy/Dockerfile", () => {
  const started = Object.values(compose.services).flatMap(({ image, command }) =>
    image === "asset-metadata-refresh-service" ? (command ?? []) : [],
  );
  const programs = [...started, ...["dead-letters", "token-state", "refresh"].map((name) => `deploy/operate/${name}.ts`)];
  const copied = [...read("deploy/Dockerfile").matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, paths = ""]) => paths.split(" "));
  const holds = (paths: readonly string[], file: string) => paths.some((path) => file === path || file.startsWith(`${path}/`));

  it.each(programs)("puts all that %s imports into the image, and .dockerignore lets it through", (program) => {
    const sent = [...read(".dockerignore").matchAll(/^!(.+)$/gm)].map(([, path = ""]) => path);
    const files = [...importedFrom(program)];
    expect(files.filter((file) => !holds(copied, file) || !holds(sent, file))).toEqual([]);
  });

  it("starts the services with the flags and the environment that they are tested with", () => {
    const variables = Object.entries(nodeEnvironment).map(([name, value]) => `${name}=${value}`);
    expect(read("deploy/Dockerfile")).toContain(`ENV ${variables.join(" ")}\n`);
    expect(read("deploy/Dockerfile")).toContain(`ENTRYPOINT ${JSON.stringify(["node", ...nodeFlags]).replaceAll(",", ", ")}\n`);
  });

  it("runs the Node version that package.json pins", () => {
    const pinned = (JSON.parse(read("package.json")) as { dependencies: Record<string, string> }).dependencies.node;
    expect(read("deploy/Dockerfile")).toContain(`ARG NODE_VERSION=${pinned}\n`);
  });
});
