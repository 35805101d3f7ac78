import { randomBytes } from "node:crypto";
import { OperatorClient, OwnerClient } from "../support/clients.ts";
import { waitFor } from "../support/wait-for.ts";
import { createWallet, type Wallet } from "../support/wallet.ts";
import type { Answer, FaultProject } from "./account.ts";
import type { FaultApi } from "./fault-api.ts";

/** A signature is good for five minutes: signing for each call would be most of an owner's work. */
const signedForMs = 60_000;

export function createOwnerWallet(): Wallet {
  const wallet = createWallet();
  let signed: { readonly atMs: number; readonly headers: Promise<Record<string, string>> } | undefined;
  return {
    ...wallet,
    headers(atSeconds) {
      if (atSeconds !== undefined) return wallet.headers(atSeconds);
      if (signed === undefined || Date.now() - signed.atMs > signedForMs)
        signed = { atMs: Date.now(), headers: wallet.headers() };
      return signed.headers;
    },
  };
}

export interface ProjectWish {
  readonly api: FaultApi;
  /** Undefined: the policy `open`. */
  readonly registered?: readonly string[];
  readonly refreshesPerHour?: number;
  readonly maxConcurrency?: number;
}

const plenty = 1_000_000;

export async function createProject(
  { registryUrl, ingressUrl }: { readonly registryUrl: string; readonly ingressUrl: string },
  { api, registered, refreshesPerHour = plenty, maxConcurrency }: ProjectWish,
): Promise<FaultProject> {
  const wallet = createOwnerWallet();
  const operator = new OperatorClient(registryUrl);
  const collection = `0x${randomBytes(20).toString("hex")}`;
  const projectId = await operator.createProject({
    name: "a project under faults",
    owner_address: wallet.address,
    refreshes_per_hour: refreshesPerHour,
  });
  await operator.createCollection(projectId, {
    collection_address: collection,
    metadata_api_url: api.url,
    token_policy: registered === undefined ? "open" : "registered",
    ...(maxConcurrency === undefined ? {} : { max_concurrency: maxConcurrency }),
  });
  for (let at = 0; at < (registered?.length ?? 0); at += 10_000) {
    await operator.registerTokens(collection, registered?.slice(at, at + 10_000) ?? []);
  }
  return {
    projectId,
    collection,
    wallet,
    owner: new OwnerClient(ingressUrl, wallet),
    api,
    registered: registered === undefined ? undefined : new Set(registered),
    refreshesPerHour,
  };
}

export interface Post {
  readonly project: FaultProject;
  readonly tokenIds: readonly string[];
  readonly idempotencyKey: string | undefined;
  /** Where the ingress is now: it may be another one at each try. */
  readonly url: () => string;
  readonly withinMs: number;
}

/** As a careful client does it: a request under an Idempotency-Key is repeated until it is answered, one without never. */
export async function postRefresh(post: Post): Promise<Answer> {
  const isFinal = (answer: Answer): boolean =>
    answer.kind === "accepted" || (answer.kind === "refused" && answer.status < 500) || post.idempotencyKey === undefined;
  let mayExist = false;
  const tryOnce = async (): Promise<Answer> => {
    const answer = await postOnce(post);
    mayExist ||= answer.kind === "unknown";
    return answer;
  };
  const last = await waitFor("an answer to a POST", tryOnce, isFinal, { withinMs: post.withinMs, everyMs: 200 }).catch(
    () => undefined,
  );
  // A refusal says nothing of an earlier try, and who stops repeating knows nothing.
  if (last === undefined || (last.kind === "refused" && mayExist)) return { kind: "unknown" };
  return last;
}

async function postOnce({ project, tokenIds, idempotencyKey, url }: Post): Promise<Answer> {
  const owner = new OwnerClient(url(), project.wallet);
  const headers = idempotencyKey === undefined ? {} : { headers: { "idempotency-key": idempotencyKey } };
  const body = { collection_address: project.collection, token_ids: tokenIds };
  try {
    const reply = await owner.send<{ refresh_id?: string; code?: string }>("POST", "/v1/metadata-refreshes", {
      body,
      ...headers,
    });
    if (reply.status === 202) return { kind: "accepted", refreshId: reply.body.refresh_id ?? "" };
    const code = reply.body?.code ?? "";
    return code === "acceptance_unknown" ? { kind: "unknown" } : { kind: "refused", status: reply.status, code };
  } catch (error) {
    return neverSent(error) ? { kind: "refused", status: 503, code: "no connection" } : { kind: "unknown" };
  }
}

function neverSent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
}
