import type { z } from "zod";
import type { Route } from "../../common/http/app.ts";

/** Who may call: whoever has the admin token. */
export type Caller = "admin" | "anybody";

/** What the OpenAPI document says of an endpoint. */
export interface RouteDocument {
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly query?: Readonly<Record<string, z.ZodType>>;
  /** Answers of success; refusals have one form everywhere. Without a schema the answer has no body. */
  readonly answers: Readonly<Record<number, { readonly description: string; readonly schema?: z.ZodType }>>;
  /** The statuses of its refusals beside those that every endpoint has. */
  readonly refusals?: readonly number[];
}

export interface AdminRoute extends Route<Caller> {
  readonly document: RouteDocument;
}

/** One line for each change of what is registered: a constant event name and ids, never a key. */
export type Audit = (event: string, ids: Readonly<Record<string, string | number>>) => void;
