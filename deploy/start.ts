import { adminToken, ingressUrl, operationsPort, registryUrl } from "./development/environment.ts";
import { Interrupted, onInterruption, unlessInterrupted } from "./development/interruption.ts";
import { serviceNames } from "./development/service-process.ts";
import { bringUp, servicesRun } from "./development/session.ts";
import { StackProblem } from "./local/problem.ts";
import { createReporter, paint } from "./local/reporter.ts";

const reporter = createReporter(process.stderr);
const signal = onInterruption(reporter.line);

process.exitCode = await start().catch((error: unknown) => {
  if (error instanceof Interrupted) return 0;
  const text = error instanceof StackProblem ? error.message : String(error instanceof Error ? error.stack : error);
  reporter.line(`${paint(process.stderr, "red", "error:")} ${text}`);
  return 1;
});

/** Runs until it is interrupted (then 0) or a service ends by itself (then 1). */
async function start(): Promise<number> {
  if (await servicesRun()) throw new StackProblem("the services run already, started in another terminal; stop them there first");
  await using cleanups = new AsyncDisposableStack();
  const services = await bringUp({ reporter, signal, cleanups });
  process.stdout.write(directions());
  const end = await unlessInterrupted(signal, services.ended);
  reporter.line(`${paint(process.stderr, "red", "error:")} ${end}`);
  return 1;
}

function directions(): string {
  const json = "-H 'content-type: application/json'";
  const admin = `-H 'authorization: Bearer ${adminToken}' ${json}`;
  const operations = serviceNames.map((name) => `${name} ${operationsPort(name)}`);
  const [ingress, registry] = [ingressUrl(), registryUrl()];
  return `
ingress (owners)      ${ingress}
registry (operators)  ${registry}
health and metrics    /livez, /readyz, /metrics on ${operations.join(", ")}

A sample Metadata API, in a second terminal:

  npx node deploy/demo/sample-api.ts

A project with a collection, a refresh of three tokens, and what became of it:

  OWNER=$(npx node deploy/demo/wallet.ts address)
  COLLECTION=0x$(date +%N%s | sha1sum | cut -c1-40)
  PROJECT=$(curl -s ${registry}/v1/projects ${admin} -d "{\\"name\\":\\"My game\\",\\"owner_address\\":\\"$OWNER\\"}" | sed -E 's/.*"project_id":([0-9]+).*/\\1/')
  curl -sw '\\n' ${registry}/v1/projects/$PROJECT/collections ${admin} -d "{\\"collection_address\\":\\"$COLLECTION\\",\\"metadata_api_url\\":\\"http://127.0.0.1:8095/metadata\\",\\"token_policy\\":\\"open\\"}"
  npx node deploy/demo/wallet.ts headers | curl -sw '\\n' ${ingress}/v1/metadata-refreshes -H @- ${json} -d "{\\"collection_address\\":\\"$COLLECTION\\",\\"token_ids\\":[\\"1\\",\\"2\\",\\"3\\"]}"
  npx node deploy/demo/wallet.ts headers | curl -sw '\\n' ${ingress}/v1/metadata-refreshes -H @-

Ctrl-C stops everything that was started here.
`;
}
