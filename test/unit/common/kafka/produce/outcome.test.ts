import { describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../../services/common/kafka/produce/outcome.ts";

function answered(errorCode: number, baseOffset: number) {
  return outcomeOf({ state: "answered", errorCode, baseOffset, appendTimeMs: 5 }, "unused");
}

describe("outcomeOf", () => {
  it("takes no error for an acknowledgement", () => {
    expect(answered(0, 7)).toEqual({ kind: "acknowledged", baseOffset: 7, appendTimeMs: 5 });
  });

  it.each([
    [3, "UNKNOWN_TOPIC_OR_PARTITION"],
    [6, "NOT_LEADER_OR_FOLLOWER"],
    [19, "NOT_ENOUGH_REPLICAS"],
    [29, "TOPIC_AUTHORIZATION_FAILED"],
    [87, "INVALID_RECORD"],
  ])("calls error %i (%s) not sent: the broker gives it before it appends", (errorCode, name) => {
    expect(answered(errorCode, -1)).toEqual({ kind: "not_sent", message: `the broker answered ${name}` });
  });

  it("calls a refusal that names an offset unknown: the leader appended, and lost the partition while it waited for replicas", () => {
    expect(answered(6, 41)).toEqual({ kind: "unknown", message: "the broker answered NOT_LEADER_OR_FOLLOWER" });
  });

  it.each([
    [-1, "UNKNOWN_SERVER_ERROR"],
    [7, "REQUEST_TIMED_OUT"],
    [13, "NETWORK_EXCEPTION"],
    [20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"],
    [56, "KAFKA_STORAGE_ERROR"],
    [4242, "an error of a later broker"],
  ])("calls error %i (%s) unknown: the record may be in the log", (errorCode) => {
    expect(answered(errorCode, -1)).toEqual({ kind: "unknown", message: `the broker answered error ${errorCode}` });
  });

  it.each([
    [10, "MESSAGE_TOO_LARGE"],
    [18, "RECORD_LIST_TOO_LARGE"],
  ])("calls error %i (%s) too large", (errorCode, name) => {
    expect(answered(errorCode, -1)).toEqual({ kind: "too_large", message: `the broker answered ${name}` });
  });

  it("calls a part that never left not sent, one that was recalled recalled, one without an answer unknown", () => {
    expect(outcomeOf({ state: "kept", recalled: false }, "refused")).toEqual({ kind: "not_sent", message: "refused" });
    expect(outcomeOf({ state: "kept", recalled: true }, "recalled")).toEqual({ kind: "recalled" });
    expect(outcomeOf({ state: "unanswered" }, "lost")).toEqual({ kind: "unknown", message: "lost" });
  });
});
