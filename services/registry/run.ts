import { randomBytes } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import { readCollection } from "../common/cassandra/registrations.ts";
import { connectCassandra } from "../common/cassandra/session.ts";
import { microsFromMs } from "../common/clock.ts";
import { addressPolicy } from "../common/http/address-guard.ts";
import { createApiKey } from "../common/http/api-key.ts";
import { createApp } from "../common/http/app.ts";
import { checkMetadataApiUrl } from "../common/http/metadata-url.ts";
import { HttpServer } from "../common/http/server.ts";
import type { ServiceContext } from "../common/lifecycle/context.ts";
import { apiKeysOfProject, createApiKeyStore } from "./adapters/api-key-store.ts";
import { collectionsOfProject, createCollectionStore } from "./adapters/collection-store.ts";
import { allProjects, createProjectStore, projectsOfOwner } from "./adapters/project-store.ts";
import { readToken, registerTokens } from "./adapters/token-store.ts";
import type { RegistryConfig } from "./config.ts";
import { createBodies } from "./core/bodies.ts";
import { admitBearer } from "./routes/admission.ts";
import { apiKeyRoutes } from "./routes/api-keys.ts";
import { collectionRoutes } from "./routes/collections.ts";
import { openApi } from "./routes/openapi.ts";
import { projectRoutes } from "./routes/projects.ts";
import type { Audit } from "./routes/route.ts";
import { tokenRoutes } from "./routes/tokens.ts";

/** The admin API: projects, collections, tokens, API keys. */
export async function run(config: RegistryConfig, context: ServiceContext): Promise<void> {
  const { logger, metrics, clock, health } = context;

  const cassandra = await connectCassandra({
    contactPoints: config.CASSANDRA_CONTACT_POINTS,
    datacenter: config.CASSANDRA_DATACENTER,
    keyspace: config.CASSANDRA_KEYSPACE,
    logger,
    metrics,
    // Somebody waits for the answer.
    maxWaitMs: 5_000,
  });
  context.onStop("cassandra", () => cassandra.close());
  health.addReadyCheck("cassandra", () => cassandra.health());

  const policy = addressPolicy(config);
  const bodies = createBodies((text) => checkMetadataApiUrl(text, policy));
  const nowMicros = () => microsFromMs(clock.nowMs());
  const audit: Audit = (event, ids) => logger.info(ids, event);
  const mint = () => ({ keyId: uuidv7(), ...createApiKey(randomBytes(32)), createdAt: nowMicros() });

  const routes = [
    ...projectRoutes({
      store: createProjectStore(cassandra),
      allProjects: () => allProjects(cassandra),
      projectsOfOwner: (ownerAddress) => projectsOfOwner(cassandra, ownerAddress),
      bodies,
      audit,
      nowMicros,
    }),
    ...collectionRoutes({
      store: createCollectionStore(cassandra),
      collectionsOfProject: (projectId) => collectionsOfProject(cassandra, projectId),
      bodies,
      audit,
      nowMicros,
    }),
    ...tokenRoutes({
      readCollection: (collectionAddress) => readCollection(cassandra, collectionAddress),
      register: (collectionAddress, registration) => registerTokens(cassandra, collectionAddress, registration),
      read: (collectionAddress, tokenId) => readToken(cassandra, collectionAddress, tokenId),
      bodies,
      audit,
      nowMicros,
    }),
    ...apiKeyRoutes({
      store: createApiKeyStore(cassandra),
      apiKeysOfProject: (projectId) => apiKeysOfProject(cassandra, projectId),
      mint,
      bodies,
      audit,
      nowMicros,
    }),
  ];
  const app = createApp({
    routes: [...routes, openApi(routes)],
    admit: admitBearer(config.ADMIN_TOKEN),
    logger,
    metrics,
    clock,
  });

  const server = new HttpServer(app, { maxConnections: config.HTTP_MAX_CONNECTIONS, logger });
  const port = await server.listen(config.HTTP_HOST, config.HTTP_PORT);
  context.onStop("http", () => server.close());
  logger.info({ port }, "http.listening");
}
