import { Command } from "commander";
import { keptWallet } from "./kept-wallet.ts";

const program = new Command("wallet").description("The wallet of the demo's project owner, for use with curl.");

program
  .command("address")
  .description("print its address")
  .action(() => void process.stdout.write(`${keptWallet().address}\n`));

program
  .command("headers")
  .description("print the three signed headers, for curl -H @-; they are good for five minutes")
  .action(async () => {
    const lines = Object.entries(await keptWallet().headers()).map(([name, value]) => `${name}: ${value}\n`);
    process.stdout.write(lines.join(""));
  });

await program.parseAsync();
