import type { Answer, Refusal } from "../../common/http/answer.ts";
import type { Route } from "../../common/http/app.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import { type Caller, countFailure, type RateDecision } from "../core/admission.ts";
import { checkTimestamp, type RecoverableSignature, readProof, refuseProof } from "../core/wallet-proof.ts";

/** A caller that has proved to hold the key of an address. */
export interface SignedCaller extends Caller {
  /** Lower-case. */
  readonly signer: string;
}

export interface SignedRoute extends Omit<Route<Caller>, "handle"> {
  handle(request: Incoming, caller: SignedCaller): Promise<Answer>;
}

export interface SigningParts {
  /** Who signed the message; undefined when nobody can have. */
  recoverAddress(message: string, signature: RecoverableSignature): string | undefined;
  takeForAddress(bucket: string): Promise<RateDecision>;
  nowMs(): number;
  readonly toleranceSeconds: number;
}

/** Every endpoint behind the wallet's signature; failures with an API key are counted against the address too. */
export function behindSignature(route: SignedRoute, parts: SigningParts): Route<Caller> {
  return {
    ...route,
    handle: async (request, caller) => countFailure(caller, await answerSigned(request, caller, { route, parts }), parts),
  };
}

async function answerSigned(
  request: Incoming,
  caller: Caller,
  { route, parts }: { route: SignedRoute; parts: SigningParts },
): Promise<Answer> {
  const signed = checkSignature(request, parts);
  return signed.ok ? route.handle(request, { ...caller, signer: signed.signer }) : signed.refusal;
}

/** Cheap before dear: forms, then the time, then the curve. */
function checkSignature(
  request: Incoming,
  parts: SigningParts,
): { readonly ok: true; readonly signer: string } | { readonly ok: false; readonly refusal: Refusal } {
  const proof = readProof((name) => request.headers(name));
  if (!proof.ok) return proof;
  const { address, timestamp, signature } = proof.value;
  const late = checkTimestamp(timestamp, { nowMs: parts.nowMs(), toleranceSeconds: parts.toleranceSeconds });
  if (late !== undefined) return { ok: false, refusal: late };
  // Every signature recovers some address: only the comparison proves anything.
  if (parts.recoverAddress(timestamp, signature) === address) return { ok: true, signer: address };
  return { ok: false, refusal: refuseProof("x-svc-eth-signature is not this address's signature of the timestamp") };
}
