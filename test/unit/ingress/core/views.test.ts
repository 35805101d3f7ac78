import { expect, it } from "vitest";
import {
  errorItemSchema,
  errorView,
  type RefreshProgress,
  refreshItem,
  refreshItemSchema,
  refreshSchema,
  refreshView,
} from "../../../../services/ingress/core/views.ts";

const facts = {
  refreshId: "01a1fc5e-77a1-7187-b0e9-0460829f6814",
  projectId: 1,
  collectionAddress: `0x${"ab".repeat(20)}`,
  requestedAt: 1_769_847_330_123_456,
  total: 3,
};

it.each<[string, RefreshProgress | undefined, string, object]>([
  ["before any token has ended", undefined, "queued", { succeeded: 0, failed: 0, pending: 3 }],
  [
    "with a row without counts",
    { succeeded: 0, failed: 0, completedAt: undefined },
    "queued",
    { succeeded: 0, failed: 0, pending: 3 },
  ],
  [
    "after one success",
    { succeeded: 1, failed: 0, completedAt: undefined },
    "in_progress",
    { succeeded: 1, failed: 0, pending: 2 },
  ],
  [
    "after one failure",
    { succeeded: 0, failed: 1, completedAt: undefined },
    "in_progress",
    { succeeded: 0, failed: 1, pending: 2 },
  ],
  [
    "after the last token",
    { succeeded: 2, failed: 1, completedAt: 1_769_847_331_000_001 },
    "completed",
    { succeeded: 2, failed: 1, pending: 0 },
  ],
])("a refresh %s", (_name, progress, status, summary) => {
  const view = refreshView(facts, progress);
  expect(view).toMatchObject({ status, summary, started_at: "2026-01-31T08:15:30.123456Z" });
  expect(view.completed_at).toBe(status === "completed" ? "2026-01-31T08:15:31.000001Z" : null);
  expect(refreshSchema.parse(view)).toEqual(view);
  const { summary: _summary, ...item } = view;
  expect(refreshItemSchema.parse(refreshItem(facts, progress))).toEqual(item);
});

it.each([
  ["a time-out", { statusCode: null, responseBody: null, errorDetail: "timeout", errorCode: "unable_to_retrieve_metadata" }],
  ["a 404", { statusCode: 404, responseBody: "<b>no</b>\u0000", errorDetail: null, errorCode: "invalid_response_status_code" }],
])("an error item of %s has every field of the specification", (_name, cause) => {
  const error = {
    ordinal: 1,
    tokenId: "7",
    collectionAddress: facts.collectionAddress,
    url: "https://api.example.com/7",
    createdAt: facts.requestedAt,
    attempts: [
      { at: facts.requestedAt, status: 503, duration_ms: 12, bytes: 5, cause: "service_unavailable", next: "retry" as const },
    ],
    ...cause,
  };
  const view = errorView(error);
  expect(errorItemSchema.parse(view)).toEqual({
    token_id: "7",
    collection_address: facts.collectionAddress,
    client_token_metadata_url: "https://api.example.com/7",
    client_response_status_code: cause.statusCode,
    client_response_body: cause.responseBody,
    error_code: cause.errorCode,
    error_detail: cause.errorDetail,
    created_at: "2026-01-31T08:15:30.123456Z",
    attempts: [
      { at: "2026-01-31T08:15:30.123456Z", status: 503, duration_ms: 12, bytes: 5, cause: "service_unavailable", next: "retry" },
    ],
  });
});
