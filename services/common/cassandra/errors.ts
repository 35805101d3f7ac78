import { errors, types } from "cassandra-driver";
import { messageOf } from "../errors.ts";

/**
 * How a call failed.
 * - unavailable: nothing was done: no node reached, too few replicas alive, or refused before work began. Try again.
 * - timed_out: no answer in time, or the connection broke: a write may have been applied, or may yet be. Try again what may
 *   be repeated; a lightweight transaction is ambiguous and has to be read back.
 * - invalid: our own mistake (query, parameters, rights): the same call fails for ever.
 */
export type CassandraFailure = "unavailable" | "timed_out" | "invalid";

/** Everything that a session rejects with. The query's text is kept for the log; its parameters are not. */
export class CassandraError extends Error {
  override readonly name = "CassandraError";
  readonly failure: CassandraFailure;
  readonly query: string | undefined;

  constructor(failure: CassandraFailure, message: string, options: { query?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.failure = failure;
    this.query = options.query;
  }

  /** Lost infrastructure: the same call may succeed later. */
  get retryable(): boolean {
    return this.failure !== "invalid";
  }
}

/** Cassandra was lost, now or for a while: what a service answers with 503, or tries again. */
export function isCassandraUnavailable(thrown: unknown): thrown is CassandraError {
  return thrown instanceof CassandraError && thrown.retryable;
}

/** What the driver threw, as a CassandraError. */
export function describeFailure(thrown: unknown, query?: string): CassandraError {
  if (thrown instanceof CassandraError) return thrown;
  return new CassandraError(failureOf(thrown), messageOf(thrown), { ...(query === undefined ? {} : { query }), cause: thrown });
}

const codes = types.responseErrorCodes;
const invalidCodes: ReadonlySet<number> = new Set([
  codes.syntaxError,
  codes.unauthorized,
  codes.invalid,
  codes.configError,
  codes.alreadyExists,
  codes.badCredentials,
  codes.protocolError,
  codes.functionFailure,
]);
const refusedCodes: ReadonlySet<number> = new Set([codes.unavailableException, codes.overloaded, codes.isBootstrapping]);

function failureOf(thrown: unknown): CassandraFailure {
  if (thrown instanceof errors.NoHostAvailableError) return worstOf(Object.values(thrown.innerErrors ?? {}));
  if (thrown instanceof errors.BusyConnectionError) return "unavailable";
  if (thrown instanceof errors.OperationTimedOutError) return "timed_out";
  if (thrown instanceof errors.AuthenticationError || thrown instanceof errors.ArgumentError) return "invalid";
  if (thrown instanceof errors.ResponseError) return byCode(thrown.code);
  // The driver's encoder throws these for parameters that do not fit their columns.
  if (thrown instanceof TypeError || thrown instanceof RangeError) return "invalid";
  return isUnwritten(thrown) ? "unavailable" : "timed_out";
}

function byCode(code: number): CassandraFailure {
  if (invalidCodes.has(code)) return "invalid";
  return refusedCodes.has(code) ? "unavailable" : "timed_out";
}

/** One node that may have taken the request leaves the effect unknown, whatever the others said. A text means: not tried. */
function worstOf(inner: readonly unknown[]): CassandraFailure {
  const failures = inner.filter((error) => error instanceof Error).map(failureOf);
  return failures.find((failure) => failure !== "unavailable") ?? "unavailable";
}

/** The driver marks socket errors: with requestNotWritten no byte of the request left this process. */
function isUnwritten(thrown: unknown): boolean {
  return (
    thrown instanceof Error && "isSocketError" in thrown && "requestNotWritten" in thrown && thrown.requestNotWritten === true
  );
}
