import { expect, it } from "vitest";
import { Metrics } from "../../../../services/common/metrics/metrics.ts";

it("shows every series of a closed label set at zero before anything happened", async () => {
  const metrics = new Metrics("fetcher");
  metrics.counter("retry_scheduled_total", "Retries by tier.", { tier: ["2s", "10s"] });
  const { body } = await metrics.text();
  expect(body).toContain('retry_scheduled_total{tier="2s",service="fetcher"} 0');
  expect(body).toContain('retry_scheduled_total{tier="10s",service="fetcher"} 0');
});

it("asks a gauge for its value when it is read", async () => {
  const metrics = new Metrics("fetcher");
  let inFlight = 0;
  metrics.gauge("metadata_fetch_inflight", "Calls in flight.", {}, (gauge) => gauge.set(inFlight));
  inFlight = 7;
  expect((await metrics.text()).body).toContain('metadata_fetch_inflight{service="fetcher"} 7');
});
