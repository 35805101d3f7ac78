import { z } from "zod";
import { type HostileName, hostileNames } from "./hostile-answers.ts";

const share = z.number().min(0).max(1);
const milliseconds = z.number().min(0).max(600_000);
const count = z.int().min(1).max(1_000_000);
const bodyBytes = z
  .int()
  .min(0)
  .max(16 * 1_048_576);
const inOrder = { error: "from must not be above to" };

/** Faults that are no status: `not_json` is an HTML page with 200, `truncated` ends the connection in mid-body. */
export const faultWords = ["hang", "reset", "truncated", "not_json", "not_an_object", "empty", "too_large"] as const;
export type Fault = (typeof faultWords)[number] | `${number}`;

const fault = z.custom<Fault>(
  (key) => typeof key === "string" && (/^[2-9]\d\d$/.test(key) || faultWords.some((word) => word === key)),
  { error: `must be a status such as 404, or one of ${faultWords.join(", ")}` },
);

/** Every setting of the simulator, all changeable while it runs. */
export const settingsSchema = z.strictObject({
  /** Of everything that is left to chance. */
  seed: z.int().min(0),
  /** Before the first byte of an answer; refusals by `limit` come at once. */
  latency: z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("fixed"), ms: milliseconds }),
    z
      .strictObject({ kind: z.literal("range"), fromMs: milliseconds, toMs: milliseconds })
      .refine((r) => r.fromMs <= r.toMs, inOrder),
    /** Log-normal: long tail to the right, cut at ten times the p99. */
    z
      .strictObject({ kind: z.literal("distribution"), medianMs: milliseconds.min(0.01), p99Ms: milliseconds })
      .refine((d) => d.medianMs <= d.p99Ms, { error: "medianMs must not be above p99Ms" }),
  ]),
  /** Share of the calls that end so; the rest succeeds. */
  mix: z
    .partialRecord(fault, share)
    .refine((mix) => Object.values(mix).reduce<number>((sum, part) => sum + (part ?? 0), 0) <= 1 + 1e-9, {
      error: "shares must add up to at most 1",
    }),
  /** Faults of `mix` hit only the first calls of a token, this many; null: every call. */
  faultyCalls: count.nullable(),
  /** Sent with every 429 and 503: seconds, or an HTTP date, or nonsense. */
  retryAfter: z
    .union([
      z.number().min(0),
      z
        .string()
        .max(200)
        .regex(/^[\x20-\x7e]*$/, "must be printable ASCII"),
    ])
    .nullable(),
  /** Hidden: what is beyond it is refused. */
  limit: z
    .discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("fixed_window"), perSecond: count }),
      z.strictObject({ kind: z.literal("sliding_window"), perSecond: count }),
      z.strictObject({ kind: z.literal("token_bucket"), perSecond: z.number().min(0.01).max(1_000_000), burst: count }),
      z.strictObject({ kind: z.literal("in_flight"), calls: count }),
    ])
    .nullable(),
  limitStatus: z.union([z.literal(429), z.literal(503)]),
  /** Of a good answer; null: what the metadata needs. Never less than it needs. */
  bodyBytes: z
    .union([bodyBytes, z.strictObject({ from: bodyBytes, to: bodyBytes }).refine((r) => r.from <= r.to, inOrder)])
    .nullable(),
  /** Part of every good answer: another one makes all metadata new. */
  revision: z.int().min(0),
  /** A connection is closed after so many answers, announced, and after so long without a call, unannounced; null: never. */
  keepAlive: z.strictObject({ calls: count.nullable(), idleMs: milliseconds.min(1).nullable() }),
  /** Every call gets these bytes instead of an answer. */
  hostile: z
    .custom<HostileName>((name) => hostileNames.some((known) => known === name), { error: "must be a known hostile answer" })
    .nullable(),
});

export type Settings = Readonly<z.output<typeof settingsSchema>>;
export type SettingsChange = Partial<Settings>;
export type Latency = Settings["latency"];

/** Answers at once, well, without a limit. */
export const defaultSettings: Settings = {
  seed: 1,
  latency: { kind: "fixed", ms: 0 },
  mix: {},
  faultyCalls: null,
  retryAfter: null,
  limit: null,
  limitStatus: 429,
  bodyBytes: null,
  revision: 1,
  keepAlive: { calls: null, idleMs: null },
  hostile: null,
};

export type SettingsResult =
  | { readonly ok: true; readonly settings: Settings }
  | { readonly ok: false; readonly problems: readonly string[] };

/** `current` with what `change` names, or everything that is wrong with it. */
export function changeSettings(current: Settings, change: unknown): SettingsResult {
  if (typeof change !== "object" || change === null || Array.isArray(change)) {
    return { ok: false, problems: ["settings: must be an object"] };
  }
  const parsed = settingsSchema.safeParse({ ...current, ...change });
  if (parsed.success) return { ok: true, settings: parsed.data };
  return { ok: false, problems: parsed.error.issues.map((issue) => problemOf(issue)) };
}

function problemOf(issue: z.core.$ZodIssue): string {
  const where = issue.path.length === 0 ? "settings" : issue.path.join(".");
  const inner = issue.code === "invalid_key" ? (issue.issues[0]?.message ?? issue.message) : issue.message;
  return `${where}: ${inner}`;
}
