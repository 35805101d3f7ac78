import { Presets, SingleBar } from "cli-progress";
import type { RefreshView } from "../../test/support/clients.ts";
import { paint } from "../local/reporter.ts";

/** Shows how far a refresh is: a bar on a terminal, one line a second elsewhere. */
export interface ProgressView {
  show(refresh: RefreshView, marketplaceCount: number): void;
  end(): void;
}

const plainLineMs = 1_000;

export function createProgressView(total: number): ProgressView {
  return process.stdout.isTTY ? barView(total) : plainView(total);
}

function barView(total: number): ProgressView {
  const counts = [
    paint(process.stdout, "green", "{succeeded} succeeded"),
    paint(process.stdout, "red", "{failed} failed"),
    "{pending} pending",
    paint(process.stdout, "cyan", "{marketplace} on the marketplace"),
  ];
  const format = `  {bar} {percentage}%  ${counts.join("  ")}  {duration} s`;
  const bar = new SingleBar({ format, hideCursor: true, clearOnComplete: false, autopadding: true }, Presets.shades_classic);
  bar.start(total, 0, { succeeded: 0, failed: 0, pending: total, marketplace: 0 });
  return {
    show: ({ summary }, marketplace) => bar.update(total - summary.pending, { ...summary, marketplace }),
    end: () => bar.stop(),
  };
}

function plainView(total: number): ProgressView {
  let nextAtMs = 0;
  const show = ({ status, summary }: RefreshView, marketplace: number) => {
    if (performance.now() < nextAtMs && status !== "completed") return;
    nextAtMs = performance.now() + plainLineMs;
    const { succeeded, failed, pending } = summary;
    process.stdout.write(
      `  ${total - pending} of ${total}: ${succeeded} succeeded, ${failed} failed, ${pending} pending; ${marketplace} on the marketplace\n`,
    );
  };
  return { show, end: () => undefined };
}
