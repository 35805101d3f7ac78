import type { ServerName } from "../settings.ts";
import { cassandra } from "./cassandra.ts";
import { kafka } from "./kafka.ts";
import { redis } from "./redis.ts";
import { registry } from "./registry.ts";
import type { ServerKind } from "./server.ts";

export const serverKinds: Readonly<Record<ServerName, ServerKind>> = { kafka, cassandra, registry, redis };
