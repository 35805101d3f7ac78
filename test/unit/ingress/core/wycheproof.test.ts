import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import secp256k1 from "secp256k1";
import { publicKeyToAddress } from "viem/utils";
import { describe, expect, it } from "vitest";
import { recoverSigner } from "../../../../services/ingress/adapters/recovery.ts";
import { readProof } from "../../../../services/ingress/core/wallet-proof.ts";

/**
 * The vectors are signatures of a SHA-256, with the key given; ours are 65 bytes over a Keccak-256, with the key recovered. Between
 * the two hashes nothing differs but the 32 bytes. So each pair of r and s is written as our header, with either recovery id, and goes
 * the way of a request's from there: reading, low s, recovery, comparison with the address of the vector's key.
 */
interface Vector {
  readonly tcId: number;
  readonly comment: string;
  readonly msg: string;
  readonly sig: string;
  readonly result: "valid" | "invalid";
}

interface Vectors {
  readonly testGroups: readonly { readonly publicKey: { readonly uncompressed: string }; readonly tests: readonly Vector[] }[];
}

/** What becomes of a vector; `unsaid`: R lies beyond the order, which takes a recovery id of 2 or 3, and Ethereum knows neither. */
type Fate = "believed" | "unsaid" | "high s" | "ill-formed" | "another signer";

const loaded = (name: string): Vectors =>
  JSON.parse(readFileSync(new URL(`wycheproof/${name}_test.json`, import.meta.url), "utf8"));

function judge(vector: Vector, publicKey: string, pair: string | undefined): Fate {
  const address = publicKeyToAddress(`0x${publicKey}`).toLowerCase();
  const digest = createHash("sha256").update(Buffer.from(vector.msg, "hex")).digest();
  const fates = ["1b", "1c"].map((v): Fate => {
    const headers: Record<string, string> = {
      "x-svc-eth-address": address,
      "x-svc-eth-signature": `0x${pair ?? vector.sig}${v}`,
      "x-svc-eth-timestamp": "1",
    };
    const proof = readProof((name) => [headers[name] ?? ""]);
    if (!proof.ok) return proof.refusal.body.message.includes("lower half") ? "high s" : "ill-formed";
    return recoverSigner(digest, proof.value.signature) === address ? "believed" : "another signer";
  });
  const [fate = "another signer"] = fates.toSorted((a, b) => Number(b === "believed") - Number(a === "believed"));
  const unsaid = fate === "another signer" && pair !== undefined && needsLargerId(digest, pair, publicKey);
  return unsaid ? "unsaid" : fate;
}

function needsLargerId(digest: Uint8Array, pair: string, publicKey: string): boolean {
  return [2, 3].some((recoveryId) => {
    try {
      const key = secp256k1.ecdsaRecover(Buffer.from(pair, "hex"), recoveryId, digest, false);
      return Buffer.from(key).toString("hex") === publicKey;
    } catch {
      return false;
    }
  });
}

/** r and s of a strict DER signature, 32 bytes each; undefined: any other encoding, or a number that takes more. */
function pairInDer(sig: string): string | undefined {
  const bytes = Buffer.from(sig, "hex");
  if (bytes[0] !== 0x30 || bytes[1] !== bytes.length - 2) return undefined;
  const r = integerAt(bytes, 2);
  const s = r && integerAt(bytes, r.end);
  return r && s && s.end === bytes.length ? r.hex + s.hex : undefined;
}

function integerAt(bytes: Buffer, start: number): { readonly hex: string; readonly end: number } | undefined {
  const length = bytes[start + 1] ?? 0;
  const end = start + 2 + length;
  const content = bytes.subarray(start + 2, end);
  const [first = 0x80, second = 0x80] = content;
  const padded = length > 1 && first === 0 && second < 0x80;
  if (bytes[start] !== 0x02 || content.length !== length || first >= 0x80 || padded) return undefined;
  const hex = content.toString("hex").replace(/^00/, "").padStart(64, "0");
  return hex.length === 64 ? { hex, end } : undefined;
}

const order = 0xffffffff_ffffffff_ffffffff_fffffffe_baaedce6_af48a03b_bfd25e8c_d0364141n;

/** The other spelling of the same signature: (r, n − s). */
function mirrored(pair: string): string {
  return pair.slice(0, 64) + (order - BigInt(`0x${pair.slice(64)}`)).toString(16).padStart(64, "0");
}

const pairOfBytes = (sig: string): string | undefined => (sig.length === 128 ? sig : undefined);

/** Every vector of a file with its fate. */
function judged(name: string, pairOf: (sig: string) => string | undefined) {
  return loaded(name).testGroups.flatMap(({ publicKey: { uncompressed: publicKey }, tests }) =>
    tests.map((vector) => {
      const pair = pairOf(vector.sig);
      return { vector, publicKey, pair, fate: judge(vector, publicKey, pair) };
    }),
  );
}

describe.each([
  {
    name: "ecdsa_secp256k1_sha256_bitcoin",
    pairOf: pairInDer,
    fates: {
      valid: { believed: 161, unsaid: 1 },
      invalid: { "ill-formed": 232, "high s": 37, "another signer": 32 },
    },
  },
  {
    name: "ecdsa_secp256k1_sha256_p1363",
    pairOf: pairOfBytes,
    fates: {
      valid: { believed: 95, "high s": 72 },
      invalid: { "ill-formed": 18, "high s": 44, "another signer": 23 },
    },
  },
])("the vectors of $name", ({ name, pairOf, fates }) => {
  const vectors = judged(name, pairOf);
  const ofResult = (result: Vector["result"]) => vectors.filter(({ vector }) => vector.result === result);
  const counts = (result: Vector["result"]) =>
    Object.fromEntries([...Map.groupBy(ofResult(result), ({ fate }) => fate)].map(([fate, list]) => [fate, list.length]));

  it("never yield the key for an invalid signature", () => {
    expect(ofResult("invalid").filter(({ fate }) => fate === "believed" || fate === "unsaid")).toEqual([]);
    expect(counts("invalid")).toEqual(fates.invalid);
  });

  it("yield it for every valid one with a low s that 65 bytes can say", () => {
    expect(ofResult("valid").filter(({ fate }) => fate === "another signer" || fate === "ill-formed")).toEqual([]);
    expect(counts("valid")).toEqual(fates.valid);
  });
});

it("yields the key for the valid signatures with a high s once s is mirrored: nothing else is wrong with them", () => {
  const high = judged("ecdsa_secp256k1_sha256_p1363", pairOfBytes).filter(
    ({ vector, fate }) => vector.result === "valid" && fate === "high s",
  );
  const fates = high.map(({ vector, publicKey, pair = "" }) => judge(vector, publicKey, mirrored(pair)));
  expect(Object.fromEntries([...Map.groupBy(fates, (fate) => fate)].map(([fate, list]) => [fate, list.length]))).toEqual({
    believed: 70,
    unsaid: 2,
  });
});
