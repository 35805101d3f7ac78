import secp256k1 from "secp256k1";
import { hashMessage, keccak256 } from "viem/utils";
import type { Metrics } from "../../common/metrics/metrics.ts";
import type { RecoverableSignature } from "../core/wallet-proof.ts";

/**
 * The lower-case address whose key signed `message` with personal_sign (EIP-191), undefined when the numbers are no signature
 * at all. Any other signature recovers *some* address: the caller compares. libsecp256k1 takes 60 µs where JavaScript takes
 * 1.5 ms; the package falls back to JavaScript where its binding does not load.
 */
export function recoverAddress(message: string, signature: RecoverableSignature): string | undefined {
  return recoverSigner(hashMessage(message, "bytes"), signature);
}

/** The same for the 32 bytes that were signed, whatever they are the hash of. */
export function recoverSigner(digest: Uint8Array, signature: RecoverableSignature): string | undefined {
  const publicKey = recoverKey(digest, signature);
  if (publicKey === undefined) return undefined;
  // The first byte says that the key is not compressed; an address is the last 20 bytes of the hash of the rest.
  return `0x${keccak256(publicKey.subarray(1)).slice(-40)}`;
}

/** recoverAddress with its time measured: a millisecond and more means that the native binding did not load. */
export function createRecoverAddress(metrics: Metrics): typeof recoverAddress {
  const durations = metrics.duration("signature_verify_seconds", "Time to recover the signer of a request.", {});
  return (message, signature) => {
    const end = durations.startTimer();
    const address = recoverAddress(message, signature);
    end();
    return address;
  };
}

function recoverKey(digest: Uint8Array, { compact, recoveryId }: RecoverableSignature): Uint8Array | undefined {
  try {
    return secp256k1.ecdsaRecover(compact, recoveryId, digest, false);
  } catch {
    return undefined;
  }
}
