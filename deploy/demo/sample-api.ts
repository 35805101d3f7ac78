import { Command, InvalidArgumentError } from "commander";
import { oddities, startSampleApi } from "./sample-collection.ts";

const { port } = new Command("sample-api")
  .description("The Metadata API of the demo's collection, to refresh against by hand. Ctrl-C ends it.")
  .option("-p, --port <port>", "where to listen, on loopback", parsePort, 8095)
  .parse()
  .opts<{ port: number }>();

const api = await startSampleApi(port);
process.stdout.write(`${api.url}/{token_id}\n`);
for (const { what, tokenIds } of oddities) process.stdout.write(`  ${what}: ${tokenIds.join(", ")}\n`);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void api.close());

function parsePort(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > 65_535) throw new InvalidArgumentError("It must be a port number.");
  return value;
}
