import type { SchemaReport } from "../../services/common/kafka/provision/schemas.ts";
import type { TopicPlan } from "../../services/common/kafka/provision/topic-plan.ts";

export interface Change {
  readonly kind: "topic" | "schema" | "table file";
  readonly name: string;
  readonly action: "created" | "altered" | "unchanged" | "refused";
  readonly notes: readonly string[];
}

/** What a run of provisioning did, or would do; `problems` are sentences, and with one of them it has failed. */
export interface Report {
  readonly changes: readonly Change[];
  readonly problems: readonly string[];
}

export function topicChange({ topic, create, growTo, alterTo, notes, refusal }: TopicPlan): Change {
  const altered = growTo !== undefined || alterTo !== undefined ? "altered" : "unchanged";
  const action = refusal !== undefined ? "refused" : create !== undefined ? "created" : altered;
  return { kind: "topic", name: topic.name, action, notes };
}

export function schemaChange({ subject, action, notes, refusal }: SchemaReport): Change {
  return { kind: "schema", name: subject, action: refusal === undefined ? action : "refused", notes };
}

const columns = ["what", "name", "action", "notes"] as const;

/** Aligned columns, no trailing blanks; then the problems. */
export function reportText({ changes, problems }: Report): string {
  const rows = [columns, ...changes.map(({ kind, name, action, notes }) => [kind, name, action, notes.join(", ")])];
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return [...lines, "", summaryOf(changes), ...problems.map((problem) => `refused: ${problem}`), ""].join("\n");
}

function summaryOf(changes: readonly Change[]): string {
  const actions = ["created", "altered", "unchanged", "refused"] as const;
  const counts = actions.map((action) => [action, changes.filter((change) => change.action === action).length] as const);
  return counts
    .filter(([, count]) => count > 0)
    .map(([action, count]) => `${count} ${action}`)
    .join(", ");
}
