import { type Refusal, refuse } from "../../common/http/answer.ts";
import { addressForm, parseAddress } from "../../common/messages/address.ts";

/** What a caller says about itself: the three headers of specification section 5, well-formed and not yet believed. */
export interface WalletProof {
  /** Lower-case. */
  readonly address: string;
  /** Decimal UNIX seconds: the signed text. */
  readonly timestamp: string;
  readonly signature: RecoverableSignature;
}

export interface RecoverableSignature {
  /** r and s, 32 bytes each, s in the lower half. */
  readonly compact: Uint8Array;
  readonly recoveryId: 0 | 1;
}

type Step<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal };

/** Every problem with the wallet's headers is a 401 that names the header and what is wrong with it, never its value. */
export function refuseProof(message: string): Refusal {
  return refuse(401, "invalid_signature", message);
}

/** `headers` gives every value of a header: one that was sent twice is refused, for nobody knows which of them counts. */
export function readProof(headers: (name: string) => readonly string[]): Step<WalletProof> {
  const address = single(headers, "x-svc-eth-address", (text) => parseAddress(text) ?? addressForm);
  if (!address.ok) return address;
  const signature = readSignature(headers);
  if (!signature.ok) return signature;
  const timestamp = single(headers, "x-svc-eth-timestamp", (text) =>
    isWholeNumber(text) ? text : "must be decimal UNIX seconds",
  );
  if (!timestamp.ok) return timestamp;
  return { ok: true, value: { address: address.value, timestamp: timestamp.value, signature: signature.value } };
}

/** Replays stay possible for as long as the window is wide: the signature covers the timestamp and nothing else. */
export function checkTimestamp(timestamp: string, options: { nowMs: number; toleranceSeconds: number }): Refusal | undefined {
  const { nowMs, toleranceSeconds } = options;
  const seconds = Number(timestamp);
  if (Math.abs(nowMs - seconds * 1000) <= toleranceSeconds * 1000) return undefined;
  if (seconds >= leastMilliseconds) return refuseProof("x-svc-eth-timestamp must be UNIX seconds, not milliseconds");
  return refuseProof(`x-svc-eth-timestamp must be UNIX seconds within ${toleranceSeconds} s of now`);
}

/** As seconds it is the year 5138, as milliseconds 1973. */
const leastMilliseconds = 100_000_000_000;

function readSignature(headers: (name: string) => readonly string[]): Step<RecoverableSignature> {
  const text = single(headers, "x-svc-eth-signature", (value) =>
    /^0x[0-9a-fA-F]{130}$/.test(value) ? value : "must be 0x and 130 hexadecimal digits (65 bytes)",
  );
  if (!text.ok) return text;
  const recoveryId = recoveryIds[text.value.slice(130).toLowerCase()];
  if (recoveryId === undefined) return refused("x-svc-eth-signature must end in 00, 01, 1b or 1c");
  // n − s signs the same text as s: with one of the two forbidden, a signature has one spelling (EIP-2).
  if (BigInt(`0x${text.value.slice(66, 130)}`) > halfOrder)
    return refused("x-svc-eth-signature must have its s in the lower half");
  return { ok: true, value: { compact: Buffer.from(text.value.slice(2, 130), "hex"), recoveryId } };
}

const recoveryIds: Readonly<Record<string, 0 | 1>> = { "00": 0, "01": 1, "1b": 0, "1c": 1 };

/** Half the order of secp256k1 (SEC 2 section 2.4.1), rounded down. */
const halfOrder = 0x7fffffff_ffffffff_ffffffff_ffffffff_5d576e73_57a4501d_dfe92f46_681b20a0n;

const isWholeNumber = (text: string): boolean => /^(0|[1-9][0-9]{0,15})$/.test(text);

/** `read` gives the value back, normalised, or what it must be. */
function single(headers: (name: string) => readonly string[], name: string, read: (text: string) => string): Step<string> {
  const [text, second] = headers(name);
  if (text === undefined) return refused(`${name} is missing`);
  if (second !== undefined) return refused(`${name} is given twice`);
  const value = read(text);
  return value.startsWith("must be") ? refused(`${name} ${value}`) : { ok: true, value };
}

function refused(message: string): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: refuseProof(message) };
}
