import { readdirSync, readFileSync } from "node:fs";
import avsc from "avsc";
import { describe, expect, it } from "vitest";
import { avroType } from "../../../../services/common/kafka/avro.ts";
import { schemaText } from "../../../../services/common/kafka/schema-files.ts";
import { loadTopics } from "../../../../services/common/kafka/topics.ts";

const folder = new URL("../../../../schemas/avro/", import.meta.url);
const files = readdirSync(folder);
const schemas = new Map(files.map((file) => [file, JSON.parse(readFileSync(new URL(file, folder), "utf8")) as object]));

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** Every named definition in a schema, without its documentation. */
function definitions(schema: Json, found = new Map<string, Json>()): Map<string, Json> {
  if (typeof schema !== "object" || schema === null) return found;
  if (!Array.isArray(schema) && "name" in schema && "fields" in schema) found.set(String(schema.name), withoutDocs(schema));
  for (const part of Object.values(schema)) definitions(part, found);
  return found;
}

function withoutDocs(schema: Json): Json {
  if (typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(withoutDocs);
  const kept = Object.entries(schema).filter(([name]) => name !== "doc" && name !== "namespace");
  return Object.fromEntries(kept.map(([name, part]) => [name, withoutDocs(part)]));
}

describe("schemas/avro", () => {
  it("has a file for each schema of deploy/topics.yaml, and no other", () => {
    const used = new Set(loadTopics().all.flatMap(({ schema }) => (schema === null ? [] : [`${schema}.avsc`])));
    expect(new Set(files)).toEqual(used);
  });

  it("defines a record that stands in several files the same way in each", () => {
    const everywhere = files.flatMap((file) =>
      [...definitions(schemas.get(file) as Json)].map(([name, body]) => ({ name, body })),
    );
    const repeated = everywhere.filter(({ name }, index) => everywhere.findIndex((one) => one.name === name) !== index);
    expect(new Set(repeated.map(({ name }) => name))).toEqual(new Set(["Attempt", "RefreshRequested"]));
    for (const { name, body } of repeated) {
      for (const other of everywhere.filter((one) => one.name === name)) expect(other.body).toEqual(body);
    }
  });

  it("is read for a topic as JSON without blanks, and not for a topic of raw bytes", () => {
    const topics = loadTopics();
    expect(schemaText(topics.tokenState)).toBe(JSON.stringify(schemas.get("token-state.avsc")));
    expect(() => schemaText(topics.deadLetter)).toThrow("internal.metadata.dead-letter.v1 has no schema");
  });
});

describe("an array or a map that comes from outside", () => {
  const strings = avroType('{"type": "array", "items": "string"}');
  const counts = avroType('{"type": "map", "values": "int"}');
  const blocks = (...longs: number[]) => Buffer.concat(longs.map((long) => avsc.Type.forSchema("long").toBuffer(long)));

  it("is read in one block or in several, with and without their sizes", () => {
    expect(strings.fromBuffer(strings.toBuffer(["a", "b"]))).toEqual(["a", "b"]);
    expect(counts.fromBuffer(counts.toBuffer({ a: 1, b: -2 }))).toEqual({ a: 1, b: -2 });
    const twoBlocks = Buffer.concat([blocks(1, 1), Buffer.from("a"), blocks(-1, 2, 1), Buffer.from("b"), blocks(0)]);
    expect(strings.fromBuffer(twoBlocks)).toEqual(["a", "b"]);
  });

  it.each([
    ["a billion items", 1_000_000_000],
    ["more items than an array can have", 2 ** 50],
    ["one item more than there are bytes", 2],
    ["a billion items, with the size of the block", -1_000_000_000],
  ])("is refused when it says it has %s, before memory is taken for them", (_what, count) => {
    const bytes = Buffer.concat([blocks(count), Buffer.from([2])]);
    const before = process.memoryUsage().heapTotal;
    expect(() => strings.fromBuffer(bytes)).toThrow("more items than there are bytes");
    expect(() => counts.fromBuffer(bytes)).toThrow("more items than there are bytes");
    expect(process.memoryUsage().heapTotal - before).toBeLessThan(32 * 1024 ** 2);
  });
});
