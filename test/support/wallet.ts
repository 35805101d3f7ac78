import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";

/** A generated account that signs as existing clients do: `personal_sign` over the decimal UNIX seconds (README, The API). */
export interface Wallet {
  /** Lower-case. */
  readonly address: string;
  readonly privateKey: Hex;
  /** The three headers that every call of a project owner carries, signed now or for the given time. */
  headers(atSeconds?: number): Promise<Record<string, string>>;
}

export function createWallet(privateKey: Hex = generatePrivateKey()): Wallet {
  const account = privateKeyToAccount(privateKey);
  return {
    address: account.address.toLowerCase(),
    privateKey,
    async headers(atSeconds = Math.floor(Date.now() / 1000)) {
      const timestamp = String(atSeconds);
      return {
        "x-svc-eth-address": account.address,
        "x-svc-eth-signature": await account.signMessage({ message: timestamp }),
        "x-svc-eth-timestamp": timestamp,
      };
    },
  };
}
