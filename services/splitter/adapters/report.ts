import type { Logger } from "../../common/logging/logger.ts";
import type { Metrics } from "../../common/metrics/metrics.ts";
import type { RefreshEvent } from "../core/refresh-handler.ts";
import type { WatchdogEvent } from "../core/watchdog-handler.ts";

export interface Reports {
  readonly refresh: (event: RefreshEvent) => void;
  readonly watchdog: (event: WatchdogEvent) => void;
}

/** One log line and the counts of each refresh that was split and each check that was made. */
export function createReports(logger: Logger, metrics: Metrics): Reports {
  const refreshes = metrics.counter("splitter_refreshes_total", "Records of refresh.requested, by what became of them.", {
    result: ["split", "completed", "expired"],
  });
  const tokens = metrics.counter("splitter_tokens_total", "Tokens handed over by the splitter, watchdog included.", {
    result: ["requested", "requested_again", "not_found", "closed"],
  });
  const checks = metrics.counter("splitter_watchdog_checks_total", "Checks on refreshes that may be stuck, by what was done.", {
    action: ["completed", "expired", "repeated", "under_way", "exhausted", "emit_again", "close"],
  });
  return {
    refresh({ result, refresh, requestedCount, notFoundCount }) {
      refreshes.inc({ result });
      tokens.inc({ result: "requested" }, requestedCount);
      tokens.inc({ result: "not_found" }, notFoundCount);
      const level = result === "split" ? "info" : "warn";
      logger[level]({ refresh_id: refresh.refresh_id, result, requestedCount, notFoundCount }, "refresh.split");
    },
    watchdog({ action, watchdog, missingCount }) {
      checks.inc({ action });
      if (action === "emit_again") tokens.inc({ result: "requested_again" }, missingCount);
      if (action === "close") tokens.inc({ result: "closed" }, missingCount);
      const { check, emission, refresh } = watchdog;
      const level = action === "emit_again" || action === "close" ? "warn" : "info";
      logger[level]({ refresh_id: refresh.refresh_id, check, emission, action, missingCount }, "watchdog.checked");
    },
  };
}
