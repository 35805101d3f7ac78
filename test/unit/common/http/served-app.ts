import { connect } from "node:net";
import { Writable } from "node:stream";
import { systemClock } from "../../../../services/common/clock.ts";
import { type AppOptions, createApp, type Route } from "../../../../services/common/http/app.ts";
import type { LoadLimits } from "../../../../services/common/http/load.ts";
import { HttpServer, type HttpServerOptions } from "../../../../services/common/http/server.ts";
import { createLogger } from "../../../../services/common/logging/logger.ts";
import { Metrics } from "../../../../services/common/metrics/metrics.ts";

export interface ServedApp {
  readonly url: string;
  readonly port: number;
  readonly server: HttpServer;
  readonly metrics: Metrics;
  readonly logged: () => readonly Record<string, unknown>[];
}

/** The routes behind a listening server, everybody admitted unless `admit` says otherwise. */
export async function serveApp(
  routes: readonly Route<undefined>[],
  options: { admit?: AppOptions<undefined>["admit"]; server?: Partial<HttpServerOptions>; load?: LoadLimits } = {},
): Promise<ServedApp> {
  const lines: string[] = [];
  const sink = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk));
      done();
    },
  });
  const metrics = new Metrics("test");
  const app = createApp<undefined>({
    routes,
    admit: options.admit ?? (async () => ({ ok: true, caller: undefined })),
    logger: createLogger("test", "info", sink),
    metrics,
    clock: systemClock,
    ...(options.load === undefined ? {} : { load: options.load }),
  });
  const server = new HttpServer(app, { maxConnections: 100, ...options.server });
  const port = await server.listen("127.0.0.1", 0);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    server,
    metrics,
    logged: () => lines.map((line): Record<string, unknown> => JSON.parse(line)),
  };
}

/** Writes bytes to a new connection and gives back all that came until the other side closed or `until` was seen. */
export function exchange(port: number, bytes: string | Buffer, until?: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (until?.test(received)) socket.destroy();
    });
    socket.on("close", () => resolve(received));
    socket.on("error", reject);
  });
}

/** Reads a body of at most a thousand bytes. */
export const read: Route<undefined> = {
  method: "POST",
  path: "/",
  handle: async (request) => {
    const body = await request.readJson(1_000);
    return body.ok ? { status: 200, body: {} } : body.refusal;
  },
};
