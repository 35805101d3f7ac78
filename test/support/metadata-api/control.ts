import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Simulator } from "./simulator.ts";

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

const mostBodyBytes = 65_536;
const usualPage = 1_000;
const largestPage = 10_000;

/** What is at the control port, as its root tells it. */
export const controlRoutes = {
  "GET /settings": "all settings",
  "PUT /settings": "change the settings that the JSON body names; the others stay",
  "GET /calls": "a page of the log: ?after=<sequence>&count=<1 to 10000>; go on with `next` as `after`",
  "DELETE /calls": "forget log and counts; answers the counts until now",
  "GET /counts": "counts, and how busy this process was, since the start or the last DELETE",
} as const;

/** The control endpoint: JSON over HTTP, on a port of its own, so that it is never counted as a call. */
export function createControl(simulator: Simulator): Server {
  return createServer((request, response) => {
    void answer(simulator, request)
      .catch((error: unknown): Reply => ({ status: 500, body: { message: String(error) } }))
      .then((reply) => send(response, reply));
  });
}

function send(response: ServerResponse, { status, body }: Reply): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(`${JSON.stringify(body)}\n`);
}

async function answer(simulator: Simulator, request: IncomingMessage): Promise<Reply> {
  const url = new URL(request.url ?? "/", "http://control");
  switch (`${request.method} ${url.pathname}`) {
    case "GET /":
      return { status: 200, body: controlRoutes };
    case "GET /settings":
      return { status: 200, body: simulator.settings };
    case "PUT /settings":
      return change(simulator, await readBody(request));
    case "GET /calls":
      return page(simulator, url.searchParams);
    case "DELETE /calls":
      return { status: 200, body: simulator.forget() };
    case "GET /counts":
      return { status: 200, body: simulator.counts() };
    default:
      return { status: 404, body: { message: `no ${request.method} ${url.pathname}; see GET /` } };
  }
}

function change(simulator: Simulator, text: string | undefined): Reply {
  if (text === undefined) return refusal([`body: at most ${mostBodyBytes} bytes`]);
  let wanted: unknown;
  try {
    wanted = JSON.parse(text);
  } catch {
    return refusal(["body: must be JSON"]);
  }
  const changed = simulator.change(wanted);
  return changed.ok ? { status: 200, body: changed.settings } : refusal(changed.problems);
}

function page(simulator: Simulator, query: URLSearchParams): Reply {
  const after = Number(query.get("after") ?? 0);
  const count = Number(query.get("count") ?? usualPage);
  if (!Number.isSafeInteger(after) || after < 0) return refusal(["after: must be a whole number, 0 or more"]);
  if (!Number.isInteger(count) || count < 1 || count > largestPage) return refusal([`count: must be 1 to ${largestPage}`]);
  return { status: 200, body: simulator.calls(after, count) };
}

function refusal(problems: readonly string[]): Reply {
  return { status: 400, body: { message: "nothing was changed", problems } };
}

/** Undefined when there is too much of it. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > mostBodyBytes) return undefined;
  }
  return text;
}
