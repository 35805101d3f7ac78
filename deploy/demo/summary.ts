import type { RefreshCompleted, TokenState } from "../../services/common/messages/records.ts";
import type { RefreshErrorView, RefreshView } from "../../test/support/clients.ts";
import type { MetadataApi } from "../../test/support/metadata-api.ts";
import type { ReadRecord } from "../../test/support/topic-reader.ts";
import { ingressUrl } from "../development/environment.ts";
import { paint } from "../local/reporter.ts";

export interface Outcome {
  readonly refresh: RefreshView;
  readonly errors: readonly RefreshErrorView[];
  readonly completion: ReadRecord<RefreshCompleted>;
  readonly states: ReadonlyMap<string, ReadRecord<TokenState>>;
  readonly api: MetadataApi;
  /** From the POST to the completion event on the public topic. */
  readonly elapsedMs: number;
}

/** What the demo has shown, in a page. */
export function summaryOf({ refresh, errors, completion, states, api, elapsedMs }: Outcome): string {
  const { succeeded, failed } = refresh.summary;
  const sample = states.values().next().value;
  const callsByToken = [...Map.groupBy(api.calls, ({ tokenId }) => tokenId).values()];
  const retriedCount = callsByToken.filter(({ length }) => length > 1).length;
  return `
${heading("The owner")}
  ${refresh.status} in ${(elapsedMs / 1000).toFixed(1)} s, from the POST to the completion event: ${succeeded} succeeded, ${failed} failed
  started ${refresh.started_at}, completed ${refresh.completed_at}
${errorTable(errors)}

${heading("The Metadata API")}
  ${api.calls.length} calls, ${retriedCount} tokens called again after a 429 or 503, at most ${api.maxConcurrent} calls at once

${heading("The marketplace")}
  ${states.size} changed tokens, then the completion event: ${JSON.stringify(completion.value)}
  the state record of one token, key ${sample?.key}:
${indented(JSON.stringify(sample?.value, null, 2))}

${heading("Go on")}
  npm start                 leaves everything running and prints how to register and refresh by hand
  then, as the same owner:
  npx node deploy/demo/wallet.ts headers | curl -sw '\\n' '${ingressUrl()}/v1/metadata-refreshes/${refresh.refresh_id}' -H @-
  npx node deploy/demo/wallet.ts headers | curl -sw '\\n' '${ingressUrl()}/v1/metadata-refreshes/${refresh.refresh_id}/errors?page_size=5' -H @-
`;
}

function errorTable(errors: readonly RefreshErrorView[]): string {
  const kind = ({ error_code, error_detail, client_response_status_code: status }: RefreshErrorView) =>
    [error_code, error_detail ?? "-", status ?? "-"].join("\t");
  const rows = [...Map.groupBy(errors, kind)].map(([text, list]) => [
    ...text.split("\t"),
    String(list.length),
    list[0]?.client_token_metadata_url ?? "",
  ]);
  const table = [
    ["error_code", "error_detail", "status", "count", "for example"],
    ...rows.sort((a, b) => Number(b[3]) - Number(a[3])),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`).join("\n");
}

const heading = (text: string) => paint(process.stdout, "cyan", text);
const indented = (text: string) => text.replaceAll(/^/gm, "  ");
