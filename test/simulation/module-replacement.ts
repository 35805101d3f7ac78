import { registerHooks } from "node:module";

/** Modules of services that reach for a server, or are dear to start, and what stands for them here. */
const replacements: Readonly<Record<string, string>> = {
  "services/common/kafka/client.ts": "kafka-client.ts",
  "services/common/kafka/codec.ts": "codec.ts",
  "services/common/kafka/topics.ts": "topics.ts",
  "services/common/cassandra/session.ts": "cassandra-session.ts",
  "services/fetcher/adapters/metadata-api.ts": "metadata-api.ts",
  "lru-cache": "lru-cache.ts",
};

/** What services are made of and a seeded defect can spoil: a module and the function that makes it. */
const spoilable: Readonly<Record<string, readonly string[]>> = {
  "services/aggregator/adapters/publisher.ts": ["createPublisher"],
  "services/aggregator/adapters/refresh-store.ts": ["createRefreshStore"],
  "services/aggregator/adapters/token-store.ts": ["createTokenStore"],
  "services/splitter/adapters/hand-over.ts": ["createHandOver"],
  "services/splitter/adapters/registered-tokens.ts": ["createReadRegistered"],
  "services/fetcher/adapters/outbox.ts": ["createOutbox"],
  "services/common/kafka/consume/batch-consumer.ts": ["startBatchConsumer"],
  "services/common/kafka/consume/window-consumer.ts": ["startWindowConsumer"],
  "services/common/kafka/consume/dead-letters.ts": ["createDeadLetters"],
  "services/common/kafka/produce/producer.ts": ["createProducer"],
};

const root = new URL("../../", import.meta.url).href;
const here = new URL("./", import.meta.url).href;
const spoiltMark = "?spoilable";

/**
 * Lets the services be started as they are, by their own `run`, with the simulation under them. Before the first of them is
 * imported; files of the simulation itself still get the real modules.
 */
export function replaceModules(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const path = specifier.startsWith(".") && resolved.url.startsWith(root) ? resolved.url.slice(root.length) : specifier;
      const fromServices = context.parentURL?.startsWith(`${root}services/`) && !context.parentURL.endsWith(spoiltMark);
      const replacement = replacements[path];
      if (!fromServices) return resolved;
      if (replacement !== undefined) return { ...resolved, format: "module-typescript", url: `${here}replaced/${replacement}` };
      return path in spoilable ? { ...resolved, url: `${resolved.url}${spoiltMark}` } : resolved;
    },
    load(url, context, next) {
      if (!url.endsWith(spoiltMark)) return next(url, context);
      const real = url.slice(0, -spoiltMark.length);
      const names = spoilable[real.slice(root.length)] ?? [];
      return { format: "module", source: spoilableSource(real, names), shortCircuit: true };
    },
  });
}

/** The module as it is, but for what these functions make: that passes through the defect that is switched on, if any. */
function spoilableSource(real: string, names: readonly string[]): string {
  return [
    `import * as real from ${JSON.stringify(real)};`,
    `import { surroundings } from ${JSON.stringify(`${here}surroundings.ts`)};`,
    `export * from ${JSON.stringify(real)};`,
    ...names.map(
      (name) => `export function ${name}(...args) {
        const make = surroundings().spoil[${JSON.stringify(name)}];
        return make === undefined ? real.${name}(...args) : make(real.${name})(...args);
      }`,
    ),
  ].join("\n");
}
