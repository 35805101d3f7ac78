import type { z } from "zod";
import { type Refusal, refuse } from "../../common/http/answer.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import { parseFields, refuseFields } from "../../common/http/problems.ts";
import { addressForm, parseAddress } from "../../common/messages/address.ts";
import { parseTokenId, tokenIdForm } from "../../common/messages/token-id.ts";

/** A part of a request, or the refusal that it earned. */
export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal };

const usualBodyBytes = 64 * 1024;

export async function readBody<S extends z.ZodType>(
  request: Incoming,
  schema: S,
  maxBytes: number = usualBodyBytes,
): Promise<Read<z.output<S>>> {
  const body = await request.readJson(maxBytes);
  if (!body.ok) return body;
  const parsed = parseFields(schema, body.value);
  return parsed.ok ? parsed : { ok: false, refusal: refuseFields(parsed.problems) };
}

export function readProjectId(request: Incoming): Read<number> {
  const text = request.params.project_id ?? "";
  const projectId = /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(projectId)) return invalidPath("project_id", "must be a positive whole number");
  request.note({ projectId });
  return { ok: true, value: projectId };
}

export function readCollectionAddress(request: Incoming): Read<string> {
  const value = parseAddress(request.params.collection_address ?? "");
  return value === undefined ? invalidPath("collection_address", addressForm) : { ok: true, value };
}

export function readTokenId(request: Incoming): Read<string> {
  const value = parseTokenId(request.params.token_id ?? "");
  return value === undefined ? invalidPath("token_id", tokenIdForm) : { ok: true, value };
}

function invalidPath(field: string, message: string): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: refuseFields([{ field, rule: "format", message }]) };
}

export const unknown = (what: "project" | "collection" | "token" | "API key"): Refusal =>
  refuse(404, "not_found", `there is no such ${what}`);
