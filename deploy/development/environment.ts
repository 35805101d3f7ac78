import { StackProblem } from "../local/problem.ts";
import type { ServiceName } from "./service-process.ts";
import { accepts, stackEnvironment } from "./stack.ts";

/** The development admin token, refused in production. */
export const adminToken = "dev-admin-token";

/** Default ports of the services: README, Run it in production. */
const httpPorts = { ingress: 8080, registry: 8090 } as const;
const operationsPorts: Readonly<Record<ServiceName, number>> = {
  ingress: 9101,
  splitter: 9102,
  fetcher: 9103,
  aggregator: 9104,
  registry: 9105,
};

/** Added to every port of a service, for a machine where the default ones are taken. */
function portOffset(): number {
  const text = process.env.SERVICE_PORT_OFFSET ?? "";
  if (!/^\d{0,5}$/.test(text)) throw new StackProblem("SERVICE_PORT_OFFSET must be a whole number; correct or unset it");
  return Number(text);
}

export const httpPort = (name: keyof typeof httpPorts): number => httpPorts[name] + portOffset();
export const operationsPort = (name: ServiceName): number => operationsPorts[name] + portOffset();
export const ingressUrl = (): string => `http://127.0.0.1:${httpPort("ingress")}`;
export const registryUrl = (): string => `http://127.0.0.1:${httpPort("registry")}`;

/** Throws a `StackProblem` for the first port of a service that somebody else listens on. */
export async function requireServicePorts(): Promise<void> {
  for (const port of [...Object.values(httpPorts), ...Object.values(operationsPorts)].map((usual) => usual + portOffset())) {
    if (!(await accepts(port))) continue;
    throw new StackProblem(
      `port ${port}, which the services need, is taken; stop what holds it, or set SERVICE_PORT_OFFSET to 1000`,
    );
  }
}

/**
 * The environment of a service on this machine: the local stack, and Metadata APIs on loopback, which a deployment for others
 * keeps closed. Whatever the shell sets wins, ports apart: two services cannot listen on the same.
 */
export function developmentEnvironment(name?: ServiceName): Record<string, string> {
  const given = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "",
  );
  return {
    ...stackEnvironment(),
    METADATA_API_ALLOWED_RANGES: "127.0.0.0/8,::1/128",
    METADATA_API_ALLOWED_PORTS: "*",
    ...Object.fromEntries(given),
    ...(name === undefined ? {} : { OPERATIONS_PORT: String(operationsPort(name)) }),
    ...(name === "ingress" || name === "registry" ? { HTTP_PORT: String(httpPort(name)) } : {}),
  };
}
