import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Health } from "../lifecycle/context.ts";
import type { Metrics } from "../metrics/metrics.ts";

/** Requests here are a line long: whoever takes longer is not a probe. */
const patience = { requestTimeout: 10_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };

/** /livez, /readyz, /startupz and /metrics, on a port of their own. */
export class OperationsServer {
  readonly #server: Server;

  constructor(health: Health, metrics: Metrics) {
    this.#server = createServer(patience, (request, response) => {
      const path = request.url?.split("?", 1)[0] ?? "";
      // A check that fails instead of answering must not end the process that it looks after.
      answer(response, path, { health, metrics }).catch(() => response.writeHead(503).end());
    });
  }

  /** Resolves with the port that was bound; rejects when it is taken. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

async function answer(
  response: ServerResponse,
  path: string,
  { health, metrics }: { readonly health: Health; readonly metrics: Metrics },
): Promise<void> {
  if (path === "/livez") return report(response, await health.live());
  if (path === "/readyz") return report(response, await health.ready());
  if (path === "/startupz") return report(response, health.started ? {} : { service: "starting" });
  if (path !== "/metrics") return void response.writeHead(404).end();
  const { contentType, body } = await metrics.text();
  response.writeHead(200, { "content-type": contentType }).end(body);
}

function report(response: ServerResponse, failing: Record<string, string>): void {
  const well = Object.keys(failing).length === 0;
  response.writeHead(well ? 200 : 503, { "content-type": "application/json" });
  response.end(JSON.stringify(well ? { status: "ok" } : { status: "failing", failing }));
}
