import { errors, types } from "cassandra-driver";
import { describe, expect, it } from "vitest";
import { CassandraError, describeFailure, isCassandraUnavailable } from "../../../../services/common/cassandra/errors.ts";

const { responseErrorCodes: codes } = types;
const answered = (code: number) => new errors.ResponseError(code, "said the node");
const closed = (more: object) => Object.assign(new Error("Socket was closed"), { isSocketError: true, ...more });
const nobody = (inner: object) => Object.assign(new errors.NoHostAvailableError({}), { innerErrors: inner });

describe("a failure", () => {
  it.each([
    ["too few replicas are alive", answered(codes.unavailableException), "unavailable"],
    ["the node refuses for its load", answered(codes.overloaded), "unavailable"],
    ["the node is starting", answered(codes.isBootstrapping), "unavailable"],
    ["every node is down", nobody({ one: "Host considered as DOWN" }), "unavailable"],
    ["no byte of the request was written", closed({ requestNotWritten: true }), "unavailable"],
    ["replicas did not acknowledge in time", answered(codes.writeTimeout), "timed_out"],
    ["replicas did not read in time", answered(codes.readTimeout), "timed_out"],
    ["a replica failed", answered(codes.writeFailure), "timed_out"],
    ["the node has a problem of its own", answered(codes.serverError), "timed_out"],
    ["nothing was answered", new errors.OperationTimedOutError("silence"), "timed_out"],
    ["the connection broke after the request", closed({}), "timed_out"],
    ["something nobody has seen before", new Error("?"), "timed_out"],
    [
      "one node was silent and the others are down",
      nobody({ one: new errors.OperationTimedOutError("?"), two: "down" }),
      "timed_out",
    ],
    ["the statement is wrong", answered(codes.syntaxError), "invalid"],
    ["a column does not exist", answered(codes.invalid), "invalid"],
    ["the role has no right", answered(codes.unauthorized), "invalid"],
    ["a parameter does not fit", new TypeError("Not a valid bigint"), "invalid"],
    ["a number does not fit", new RangeError("out of range"), "invalid"],
  ])("is known for what it means when %s", (_what, thrown, failure) => {
    const error = describeFailure(thrown, "SELECT 1");
    expect(error).toMatchObject({ failure, retryable: failure !== "invalid", query: "SELECT 1", message: thrown.message });
    expect(error.cause).toBe(thrown);
    expect(isCassandraUnavailable(error)).toBe(failure !== "invalid");
  });

  it("is described once", () => {
    const first = new CassandraError("unavailable", "waited");
    expect(describeFailure(first, "SELECT 1")).toBe(first);
  });

  it("of another kind is not lost infrastructure", () => {
    expect(isCassandraUnavailable(new TypeError("bug"))).toBe(false);
  });
});
