import { randomUUID } from "node:crypto";
import type { IncomingMessage, RequestListener } from "node:http";
import Router from "@koa/router";
import Koa, { type ParameterizedContext } from "koa";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { type Answer, type Refusal, type RefusalBody, refuse } from "./answer.ts";
import { HttpIncoming, type Incoming, type RouteMatch } from "./incoming.ts";
import { Load, type LoadLimits, refuseLoad, Share, usualLoad } from "./load.ts";

/** One endpoint. `path` is a template: `/v1/things/:thing_id`; upper and lower case and a trailing slash make a difference. */
export interface Route<C> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  handle(request: Incoming, caller: C): Promise<Answer> | Answer;
}

export type Admission<C> = { readonly ok: true; readonly caller: C } | { readonly ok: false; readonly refusal: Refusal };

export interface AppOptions<C> {
  readonly routes: readonly Route<C>[];
  /** Asked first, for every request, unknown routes included: who is calling, and may they call now. */
  admit(request: Incoming): Promise<Admission<C>>;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Default: usualLoad. */
  readonly load?: LoadLimits;
}

/** What every request needs of the application. */
type Serving<C> = Pick<AppOptions<C>, "admit"> & { readonly load: Load };

interface State {
  incoming?: HttpIncoming;
  answer?: Answer;
}
type Context = ParameterizedContext<State>;

/**
 * The HTTP application of a service. Handlers return Answer values. Whatever is thrown is lost infrastructure or a bug: it is
 * logged and answered with 503 `unavailable`, without its text. HEAD is answered by GET's handler, OPTIONS with the methods.
 * An Upgrade header is ignored, as RFC 9110 section 7.8 allows: clients send `h2c` uninvited.
 */
export function createApp<C>(options: AppOptions<C>): RequestListener {
  const app = new Koa<State>();
  const serving = { admit: options.admit, load: new Load(options.load ?? usualLoad, options.metrics) };
  const router = new Router<State>({ sensitive: true, strict: true });
  for (const route of options.routes) {
    const name = `${route.method} ${route.path}`;
    router.register(route.path, [route.method], (ctx) =>
      serve(ctx, serving, { route: name, params: ctx.params }, (incoming, caller: C) => route.handle(incoming, caller)),
    );
  }
  app.use(boundary(options));
  app.use(router.routes());
  app.use((ctx) => serve(ctx, serving, { route: undefined, params: {} }, () => unmatched(router, ctx)));
  app.on("error", (error: unknown) => options.logger.debug({ err: error }, "request.connection_lost"));
  return app.callback();
}

async function serve<C>(
  ctx: Context,
  { admit, load }: Serving<C>,
  match: RouteMatch,
  handle: (incoming: Incoming, caller: C) => Promise<Answer> | Answer,
): Promise<void> {
  const share = new Share(load);
  const incoming = new HttpIncoming(ctx.req, randomUUID(), { ...match, share });
  ctx.state.incoming = incoming;
  try {
    const admission = share.enter() ? await admit(incoming) : { ok: false as const, refusal: refuseLoad() };
    if (!admission.ok) ctx.state.answer = admission.refusal;
    else ctx.state.answer = refuseForm(ctx.req) ?? (await handle(incoming, admission.caller));
  } finally {
    share.end();
  }
}

/** Forms that HTTP libraries let through and intermediaries read differently: request smuggling lives on that difference. */
function refuseForm(request: IncomingMessage): Refusal | undefined {
  const hosts = request.headersDistinct.host ?? [];
  const needed = request.httpVersion === "1.0" ? 0 : 1;
  if (hosts.length > 1 || hosts.length < needed || !/^[A-Za-z0-9._:[\]-]*$/.test(hosts[0] ?? "")) {
    return refuse(400, "invalid_request", "there must be exactly one Host header, with a host and a port");
  }
  if (request.url?.startsWith("/")) return undefined;
  return refuse(400, "invalid_request", "the request target must be a path");
}

function unmatched(router: Router<State>, ctx: Context): Answer {
  const { path: layers } = router.match(ctx.path, ctx.method);
  const methods = [...new Set(layers.flatMap((layer) => layer.methods))];
  if (methods.length === 0) return refuse(404, "not_found", "there is nothing at this path");
  const allow = [...methods, "OPTIONS"].join(", ");
  if (ctx.method === "OPTIONS") return { status: 204, headers: { allow } };
  return refuse(405, "method_not_allowed", `the methods here are ${allow}`, { headers: { allow } });
}

/** Turns the answer, or what was thrown instead, into the response, its metrics and its one log line. */
function boundary<C>(options: AppOptions<C>) {
  const observe = observer(options);
  return async (ctx: Context, next: () => Promise<void>): Promise<void> => {
    const startedMs = options.clock.monotonicMs();
    try {
      await next();
    } catch (error) {
      options.logger.error({ err: error, requestId: ctx.state.incoming?.id }, "request.failed");
      ctx.state.answer = refuse(503, "unavailable", "the service cannot answer now", { headers: { "retry-after": "2" } });
    }
    write(ctx);
    observe(ctx, options.clock.monotonicMs() - startedMs);
  };
}

function write(ctx: Context): void {
  const { answer, incoming } = ctx.state;
  if (answer === undefined) return;
  ctx.status = answer.status;
  ctx.set({ "cache-control": "no-store", "x-content-type-options": "nosniff", ...answer.headers });
  if (incoming !== undefined) ctx.set("x-request-id", incoming.id);
  if (answer.body === undefined) ctx.body = null;
  else {
    ctx.type = "application/json";
    ctx.body = JSON.stringify(answer.body);
  }
}

const unknownRoute = "unknown";

function observer<C>({ routes, metrics, logger }: AppOptions<C>) {
  const route = [...routes.map(({ method, path }) => `${method} ${path}`), unknownRoute];
  const requests = metrics.counter("http_requests_total", "Answered requests.", {
    route,
    status_class: ["2xx", "4xx", "5xx"],
  });
  const durations = metrics.duration("http_request_duration_seconds", "Time to the answer, reading the body included.", {
    route,
  });
  return ({ state: { answer, incoming }, method, status }: Context, ms: number): void => {
    const labels = { route: incoming?.route ?? unknownRoute };
    requests.inc({ ...labels, status_class: `${Math.floor(status / 100)}xx` });
    durations.observe(labels, ms / 1000);
    const code = codeOf(answer);
    logger.info(
      {
        requestId: incoming?.id,
        method,
        route: incoming?.route,
        status,
        ...(code === undefined ? {} : { code }),
        ms: Math.round(ms * 10) / 10,
        ...incoming?.noted,
      },
      "request.answered",
    );
  };
}

function codeOf(answer: Answer | undefined): string | undefined {
  if (answer === undefined || answer.status < 400) return undefined;
  return (answer.body as RefusalBody | undefined)?.code;
}
