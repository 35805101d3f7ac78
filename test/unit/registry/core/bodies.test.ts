import { describe, expect, it } from "vitest";
import { addressPolicy } from "../../../../services/common/http/address-guard.ts";
import { checkMetadataApiUrl } from "../../../../services/common/http/metadata-url.ts";
import { parseFields, refuseFields } from "../../../../services/common/http/problems.ts";
import { type Bodies, createBodies } from "../../../../services/registry/core/bodies.ts";

const policy = addressPolicy({ METADATA_API_ALLOWED_RANGES: [], METADATA_API_ALLOWED_PORTS: ["80", "443"] });
const bodies = createBodies((text) => checkMetadataApiUrl(text, policy));

const owner = `0x${"Ab".repeat(20)}`;
const project = { name: "Game", owner_address: owner };
const collection = { collection_address: owner, metadata_api_url: "https://api.example.com/tokens/" };
const apiKey = { name: "backend", requests_per_second: 50 };

describe("a body that fits", () => {
  it.each<[keyof Bodies, object, object]>([
    ["newProject", project, { name: "Game", ownerAddress: owner.toLowerCase(), refreshesPerHour: null }],
    ["projectChange", { refreshes_per_hour: null }, { refreshesPerHour: null }],
    ["projectChange", { owner_address: owner }, { ownerAddress: owner.toLowerCase() }],
    [
      "newCollection",
      collection,
      {
        collectionAddress: owner.toLowerCase(),
        metadataApiUrl: "https://api.example.com/tokens",
        tokenPolicy: "registered",
        maxConcurrency: null,
        maxRequestsPerSecond: null,
      },
    ],
    ["collectionChange", { token_policy: "open", max_concurrency: 4 }, { tokenPolicy: "open", maxConcurrency: 4 }],
    ["tokens", { token_ids: ["0", "1", "1"] }, { tokenIds: ["0", "1", "1"] }],
    ["newApiKey", apiKey, { name: "backend", requestsPerSecond: 50 }],
    ["apiKeyChange", { name: "other" }, { name: "other" }],
  ])("of %s comes out as the core takes it, with the defaults and nothing it did not say", (schema, body, value) => {
    expect(parseFields(bodies[schema], body)).toStrictEqual({ ok: true, value });
  });

  it("may name ten thousand tokens", () => {
    const token_ids = Array.from({ length: 10_000 }, (_, id) => String(id));
    expect(parseFields(bodies.tokens, { token_ids }).ok).toBe(true);
    expect(problemsOf("tokens", { token_ids: [...token_ids, "10000"] })).toEqual([["token_ids", "max_items"]]);
  });
});

function problemsOf(schema: keyof Bodies, body: unknown): string[][] {
  const parsed = parseFields(bodies[schema], body);
  return parsed.ok ? [] : parsed.problems.map(({ field, rule }) => [field, rule]);
}

describe("a body that does not fit", () => {
  it.each<[string, keyof Bodies, unknown, string[][]]>([
    ["no object", "newProject", [], [["body", "type"]]],
    ["null", "newProject", null, [["body", "type"]]],
    [
      "nothing in it",
      "newProject",
      {},
      [
        ["name", "type"],
        ["owner_address", "type"],
      ],
    ],
    ["an unknown field", "newProject", { ...project, owner: "x" }, [["owner", "unknown_field"]]],
    ["an empty name", "newProject", { ...project, name: "" }, [["name", "min_length"]]],
    ["a name of 201 characters", "newProject", { ...project, name: "n".repeat(201) }, [["name", "max_length"]]],
    ["a line end in the name", "newProject", { ...project, name: "a\r\nb" }, [["name", "format"]]],
    ["an escape sequence in the name", "newApiKey", { ...apiKey, name: "\u001b[31m" }, [["name", "format"]]],
    ["a short address", "newProject", { ...project, owner_address: "0xab" }, [["owner_address", "address"]]],
    ["a limit of 0", "newProject", { ...project, refreshes_per_hour: 0 }, [["refreshes_per_hour", "minimum"]]],
    ["half a refresh", "newProject", { ...project, refreshes_per_hour: 1.5 }, [["refreshes_per_hour", "type"]]],
    ["a limit as text", "newProject", { ...project, refreshes_per_hour: "20" }, [["refreshes_per_hour", "type"]]],
    [
      "several mistakes",
      "newProject",
      { name: 1, owner_address: "x" },
      [
        ["name", "type"],
        ["owner_address", "address"],
      ],
    ],
    ["no change", "projectChange", {}, [["body", "empty_change"]]],
    ["a name taken back", "projectChange", { name: null }, [["name", "type"]]],
    ["another project", "collectionChange", { project_id: 2 }, [["project_id", "unknown_field"]]],
    ["an unknown policy", "newCollection", { ...collection, token_policy: "none" }, [["token_policy", "enum"]]],
    [
      "a loopback URL",
      "newCollection",
      { ...collection, metadata_api_url: "http://127.0.0.1" },
      [["metadata_api_url", "address"]],
    ],
    ["a file URL", "collectionChange", { metadata_api_url: "file:///etc/passwd" }, [["metadata_api_url", "scheme"]]],
    [
      "a URL with a port that is not allowed",
      "collectionChange",
      { metadata_api_url: "https://a.example:22" },
      [["metadata_api_url", "port"]],
    ],
    ["no tokens", "tokens", { token_ids: [] }, [["token_ids", "min_items"]]],
    ["a token id as number", "tokens", { token_ids: ["1", 2] }, [["token_ids[1]", "type"]]],
    ["a token id with a leading zero", "tokens", { token_ids: ["1", "2", "03"] }, [["token_ids[2]", "token_id"]]],
    ["a rate of 0", "newApiKey", { ...apiKey, requests_per_second: 0 }, [["requests_per_second", "minimum"]]],
  ])("is refused with field, place and rule: %s", (_what, schema, body, problems) => {
    expect(problemsOf(schema, body)).toEqual(problems);
  });

  it("does not answer ten thousand mistakes with ten thousand lines", () => {
    const token_ids = Array.from({ length: 10_000 }, () => "x");
    const parsed = parseFields(bodies.tokens, { token_ids });
    expect(refuseFields(parsed.ok ? [] : parsed.problems).body.details).toHaveLength(20);
  });
});
