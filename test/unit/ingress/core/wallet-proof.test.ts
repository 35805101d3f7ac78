import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { concatHex, keccak256, stringToHex, toBytes } from "viem/utils";
import { beforeAll, describe, expect, it } from "vitest";
import { recoverAddress } from "../../../../services/ingress/adapters/recovery.ts";
import { checkTimestamp, readProof } from "../../../../services/ingress/core/wallet-proof.ts";

const account = privateKeyToAccount(`0x${"11".repeat(32)}`);
const timestamp = "1795237200";
const order = 0xffffffff_ffffffff_ffffffff_fffffffe_baaedce6_af48a03b_bfd25e8c_d0364141n;

let signature = "";
beforeAll(async () => {
  signature = await account.signMessage({ message: timestamp });
});

type Headers = Record<string, string | readonly string[] | undefined>;

/** Who is believed to have signed, or why nobody is. */
function judge(headers: Headers): string {
  const all: Headers = {
    "x-svc-eth-address": account.address,
    "x-svc-eth-signature": signature,
    "x-svc-eth-timestamp": timestamp,
    ...headers,
  };
  const proof = readProof((name) => [all[name] ?? []].flat());
  if (!proof.ok) return `${proof.refusal.status} ${proof.refusal.body.message}`;
  const { address, signature: read, timestamp: signed } = proof.value;
  const signer = recoverAddress(signed, read);
  return signer === address ? "believed" : "another signer";
}

const part = (text: string, from: number, to: number, by: string) => text.slice(0, from) + by + text.slice(to);
const r = (by: string) => part(signature, 2, 66, by);
const s = (by: string) => part(signature, 66, 130, by);
const v = (by: string) => part(signature, 130, 132, by);
const hex = (value: bigint) => value.toString(16).padStart(64, "0");
const sOf = (text: string) => BigInt(`0x${text.slice(66, 130)}`);

/** What EIP-191 has a wallet hash for its other versions: 0x19, the version, the version's data, the text. */
const prefixed = (version: string, data: Hex): Hex =>
  keccak256(concatHex(["0x19", `0x${version}`, data, stringToHex(timestamp)]));

/** EIP-2098: the recovery id in the highest bit of s. */
const compact = (text: string) => `0x${text.slice(2, 66)}${hex(sOf(text) + (text.endsWith("1c") ? 2n ** 255n : 0n))}`;

it("recovers the known signer of a known text", () => {
  const known =
    "31043c2584b8f20d67c4d895f8e385e0d5c0ecb8bfb34e76874da4c27660c13d0cdbdf4bb9fe6473614d400e90a846ee25271f5a102a5c3162e3f84321a2113a";
  expect(recoverAddress("1609462141000", { compact: Buffer.from(known, "hex"), recoveryId: 0 })).toBe(
    "0x95cf5c1b78ed03db3a1d69e722f2e2fa40cdf584",
  );
});

describe("a signature", () => {
  const otherV = () => (signature.endsWith("1b") ? "1c" : "1b");

  it.each<[string, () => string]>([
    ["G1 as wallets make it", () => signature],
    ["G3 with a recovery id from 0", () => v(signature.endsWith("1b") ? "00" : "01")],
    ["G7 in upper-case hexadecimal", () => `0x${signature.slice(2).toUpperCase()}`],
  ])("%s is believed", (_name, build) => {
    expect(judge({ "x-svc-eth-signature": build() })).toBe("believed");
  });

  it.each<[string, () => string | string[] | undefined, RegExp]>([
    ["that is missing", () => undefined, /is missing/],
    ["G25 that is given twice", () => [signature, signature], /given twice/],
    ["G11 that is empty", () => "", /65 bytes/],
    ["G12 that is not hexadecimal", () => part(signature, 10, 12, "zz"), /65 bytes/],
    ["G8 without 0x", () => signature.slice(2), /65 bytes/],
    ["with 0X", () => part(signature, 0, 2, "0X"), /65 bytes/],
    ["G4 of 64 bytes, as EIP-2098 makes it", () => compact(signature), /65 bytes/],
    ["G10 whose v was dropped", () => signature.slice(0, 130), /65 bytes/],
    ["G9 with a byte too much", () => `${signature}00`, /65 bytes/],
    ["G24 of a contract wallet (ERC-6492), longer", () => signature + "00".repeat(100), /65 bytes/],
    ["G6 with v = 29", () => v("1d"), /00, 01, 1b or 1c/],
    ["G5 with v = 37, as EIP-155 has it", () => v("25"), /00, 01, 1b or 1c/],
    ["with v = 2", () => v("02"), /00, 01, 1b or 1c/],
    ["G2 with its s in the upper half", () => part(s(hex(order - sOf(signature))), 130, 132, otherV()), /lower half/],
    ["G16 with s = n + s", () => s(hex((sOf(signature) + order) % 2n ** 256n)), /lower half|another signer/],
    ["with s = n", () => s(hex(order)), /lower half/],
    ["G14 with s = 0", () => s(hex(0n)), /another signer/],
    ["G13 with r = 0", () => r(hex(0n)), /another signer/],
    ["G15 with r = n", () => r(hex(order)), /another signer/],
    ["of the other recovery id", () => v(otherV()), /another signer/],
  ])("%s is refused", (_name, build, reason) => {
    expect(judge({ "x-svc-eth-signature": build() })).toMatch(reason);
  });

  it.each<[string, () => Promise<string>]>([
    ["G23 another text", () => account.signMessage({ message: "1795237201" })],
    ["the text with a blank", () => account.signMessage({ message: `${timestamp} ` })],
    ["its bytes as a number", () => account.signMessage({ message: { raw: `0x${BigInt(timestamp).toString(16)}` } })],
    ["G23 the hash without the prefix of personal_sign", () => account.sign({ hash: keccak256(toBytes(timestamp)) })],
    ["G23 the text for a validator (EIP-191, version 0x00)", () => account.sign({ hash: prefixed("00", account.address) })],
    ["G23 the text as a structure (EIP-191, version 0x01)", () => account.sign({ hash: prefixed("01", `0x${"11".repeat(32)}`) })],
    [
      "G23 typed data (EIP-712)",
      () =>
        account.signTypedData({
          domain: {},
          types: { Timestamp: [{ name: "value", type: "string" }] },
          primaryType: "Timestamp",
          message: { value: timestamp },
        }),
    ],
    [
      "G17 the same text by another account",
      () => privateKeyToAccount(`0x${"22".repeat(32)}`).signMessage({ message: timestamp }),
    ],
  ])("of %s proves nothing", async (_name, sign) => {
    expect(judge({ "x-svc-eth-signature": await sign() })).toBe("another signer");
  });
});

describe("an address", () => {
  it.each([
    ["G18 with its checksum", account.address],
    ["G18 in lower case", account.address.toLowerCase()],
    ["G18 in upper case", `0x${account.address.slice(2).toUpperCase()}`],
  ])("%s is the same address", (_name, address) => {
    expect(judge({ "x-svc-eth-address": address })).toBe("believed");
  });

  it.each<[string, string | string[] | undefined, RegExp]>([
    ["missing", undefined, /is missing/],
    ["G25 given twice", [account.address, account.address], /given twice/],
    ["without 0x", account.address.slice(2), /40 hexadecimal/],
    ["too short", account.address.slice(0, 41), /40 hexadecimal/],
    ["too long", `${account.address}0`, /40 hexadecimal/],
    ["two in one line", `${account.address}, ${account.address}`, /40 hexadecimal/],
    ["G19 the zero address", `0x${"0".repeat(40)}`, /another signer/],
    ["G17 somebody else's", `0x${"ab".repeat(20)}`, /another signer/],
  ])("%s is refused", (_name, address, reason) => {
    expect(judge({ "x-svc-eth-address": address })).toMatch(reason);
  });

  it("G19 that is zero is not what an impossible signature recovers to", () => {
    const impossible = { "x-svc-eth-address": `0x${"0".repeat(40)}`, "x-svc-eth-signature": `0x${"0".repeat(130)}` };
    expect(judge(impossible)).toBe("another signer");
  });
});

describe("a timestamp", () => {
  it.each([
    "",
    "-1795237200",
    "+1795237200",
    "1.5",
    "1e9",
    "0x6b",
    "01795237200",
    " 1795237200",
    "1795 237200",
    "١٧٩٥",
    "9".repeat(17),
  ])("G20 '%s' is refused for its form", (text) => {
    expect(judge({ "x-svc-eth-timestamp": text })).toMatch(/401 .*UNIX seconds/);
  });

  it("G25 given twice, or not at all, is refused", () => {
    expect(judge({ "x-svc-eth-timestamp": [timestamp, timestamp] })).toMatch(/given twice/);
    expect(judge({ "x-svc-eth-timestamp": undefined })).toMatch(/is missing/);
  });

  const nowMs = 1_795_237_200_000;
  const check = (text: string, now = nowMs) => checkTimestamp(text, { nowMs: now, toleranceSeconds: 300 });

  it.each([
    ["now", "1795237200", nowMs],
    ["at the old edge", "1795236900", nowMs],
    ["at the far edge", "1795237500", nowMs],
    ["a second inside the old edge", "1795236901", nowMs],
    ["a second ahead", "1795237201", nowMs],
  ])("G20 %s is in time", (_name, text, now) => {
    expect(check(text, now)).toBeUndefined();
  });

  it.each([
    ["G22 past the old edge", "1795236899", nowMs],
    ["past the far edge", "1795237501", nowMs],
    ["a millisecond past the old edge", "1795236900", nowMs + 1],
    ["of the epoch", "0", nowMs],
    ["of the year 5000", "95617584000", nowMs],
  ])("G20 %s is out of time", (_name, text, now) => {
    expect(check(text, now)?.body.message).toMatch(/UNIX seconds within 300 s/);
  });

  it.each([String(nowMs), "1609462141000"])("G20 in milliseconds (%s) is told the unit", (text) => {
    expect(check(text)).toMatchObject({ status: 401, body: { message: expect.stringContaining("not milliseconds") } });
  });
});
