import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createWallet, type Wallet } from "../../test/support/wallet.ts";
import { writeWhole } from "../local/folders.ts";
import { codeOf } from "../local/problem.ts";
import { readSettings } from "../local/settings.ts";

/** The owner whom the demo plays: generated at first use and kept, so that the same owner can go on with curl afterwards. */
export function keptWallet(): Wallet {
  const file = join(readSettings().home, "wallet.json");
  try {
    return createWallet(JSON.parse(readFileSync(file, "utf8")).private_key);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
  const wallet = createWallet();
  writeWhole(file, `${JSON.stringify({ address: wallet.address, private_key: wallet.privateKey })}\n`);
  return wallet;
}
