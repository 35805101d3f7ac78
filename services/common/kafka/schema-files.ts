import { readFileSync } from "node:fs";
import type { TopicDefinition } from "./topics.ts";

const schemasFolder = new URL("../../../schemas/avro/", import.meta.url);

/** The schema of a topic as it is registered and looked up. Throws for a topic of raw bytes. */
export function schemaText(topic: TopicDefinition): string {
  if (topic.schema === null) throw new Error(`${topic.baseName} has no schema`);
  return JSON.stringify(JSON.parse(readFileSync(new URL(`${topic.schema}.avsc`, schemasFolder), "utf8")));
}

/** The registry's name for the schemas of a topic's values. */
export function subjectOf(topic: TopicDefinition): string {
  return `${topic.name}-value`;
}
