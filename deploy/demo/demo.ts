import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { OperatorClient, OwnerClient } from "../../test/support/clients.ts";
import type { Wallet } from "../../test/support/wallet.ts";
import { ingressUrl, registryUrl } from "../development/environment.ts";
import { Interrupted, onInterruption } from "../development/interruption.ts";
import { bringUp, servicesRun } from "../development/session.ts";
import { StackProblem } from "../local/problem.ts";
import { createReporter, paint } from "../local/reporter.ts";
import { keptWallet } from "./kept-wallet.ts";
import { type Marketplace, openMarketplace } from "./marketplace.ts";
import { createProgressView } from "./progress.ts";
import { mintedTokenIds, oddities, requestedTokenIds, startSampleApi } from "./sample-collection.ts";
import { summaryOf } from "./summary.ts";

const pollMs = 250;
/** What the owner is granted. Without a key an IP address may call 5 times a second, over everything: specification section 8. */
const requestsPerSecond = 20;
const completeWithinMs = 120_000;

const reporter = createReporter(process.stderr);
const signal = onInterruption(reporter.line);
const say = (text: string) => void process.stdout.write(`${text}\n`);

process.exitCode = await demo().catch((error: unknown) => {
  if (error instanceof Interrupted) return 130;
  const text = error instanceof StackProblem ? error.message : String(error instanceof Error ? error.stack : error);
  reporter.line(`${paint(process.stderr, "red", "error:")} ${text}`);
  return 1;
});

/** One refresh of a sample collection, seen by its owner, by its Metadata API and by a marketplace. */
async function demo(): Promise<number> {
  await using cleanups = new AsyncDisposableStack();
  if (await servicesRun()) reporter.line("using the services that run already; they are left running");
  else await bringUp({ reporter, signal, cleanups });

  const api = await startSampleApi();
  cleanups.defer(() => api.close());
  const marketplace = await openMarketplace();
  cleanups.defer(() => marketplace.close());
  say(`\nsample Metadata API  ${api.url}/{token_id}: ${requestedTokenIds.length} tokens, of them`);
  for (const { what, tokenIds } of oddities) say(`                     ${String(tokenIds.length).padStart(4)} ${what}`);
  say(`                     ${String(requestedTokenIds.length - mintedTokenIds.length).padStart(4)} never minted`);

  const wallet = keptWallet();
  const address = `0x${randomBytes(20).toString("hex")}`;
  const apiKey = await register(wallet, { address, metadataApiUrl: api.url });
  const owner = new OwnerClient(ingressUrl(), wallet, { apiKey });

  const beganMs = performance.now();
  const { body, headers } = await owner.requestRefresh(address, requestedTokenIds);
  const refreshId = body.refresh_id;
  const remaining = `${headers.get("x-svc-remaining-refreshes")} of ${headers.get("x-svc-refreshes-limit")} left this hour`;
  say(`POST                 202 after ${Math.round(performance.now() - beganMs)} ms, refresh ${refreshId}, ${remaining}\n`);

  const { refresh, completion, completedMs } = await follow({ owner, refreshId, address, marketplace });
  const errors = await owner.listErrors(refreshId);
  const states = marketplace.states(address);
  say(summaryOf({ refresh, errors, completion, states, api, elapsedMs: completedMs - beganMs }));
  return 0;
}

/** What an operator does for a new project, once. Returns the project's API key. */
async function register(wallet: Wallet, collection: { address: string; metadataApiUrl: string }): Promise<string> {
  const operator = new OperatorClient(registryUrl());
  const projectId = await operator.createProject({ name: "Sample game", owner_address: wallet.address });
  say(`project              ${projectId}, owned by ${wallet.address}`);
  await operator.createCollection(projectId, {
    collection_address: collection.address,
    metadata_api_url: collection.metadataApiUrl,
  });
  await operator.registerTokens(collection.address, mintedTokenIds);
  say(`collection           ${collection.address}, ${mintedTokenIds.length} tokens registered`);
  const apiKey = await operator.createApiKey(projectId, { name: "demo", requests_per_second: requestsPerSecond });
  say(`API key              ${apiKey.slice(0, 8)}..., ${requestsPerSecond} requests a second`);
  return apiKey;
}

interface Followed {
  readonly owner: OwnerClient;
  readonly refreshId: string;
  readonly address: string;
  readonly marketplace: Marketplace;
}

/** Shows the progress until the owner sees `completed` and the marketplace the completion event. */
async function follow({ owner, refreshId, address, marketplace }: Followed) {
  const view = createProgressView(requestedTokenIds.length);
  const deadlineMs = performance.now() + completeWithinMs;
  const completed = whenCompleted(marketplace, refreshId, deadlineMs);
  completed.catch(() => undefined);
  try {
    for (;;) {
      const refresh = await owner.getRefresh(refreshId);
      view.show(refresh, marketplace.states(address).size);
      if (refresh.status === "completed") return { refresh, ...(await completed) };
      if (performance.now() > deadlineMs) throw new Error(`refresh ${refreshId} is not complete: ${JSON.stringify(refresh)}`);
      await sleep(pollMs, undefined, { signal });
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    view.end();
  }
}

/** The event may be seen before or after the owner's next look at the progress. */
async function whenCompleted(marketplace: Marketplace, refreshId: string, deadlineMs: number) {
  for (;;) {
    const completion = marketplace.completion(refreshId);
    if (completion !== undefined) return { completion, completedMs: performance.now() };
    if (performance.now() > deadlineMs || signal.aborted) throw new Error("no completion event was seen");
    await sleep(20);
  }
}
