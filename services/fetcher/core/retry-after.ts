/** Bounds for what a host may ask: README, The call to the Metadata API. The longest delay tier is as long. */
const leastMs = 1_000;
const mostMs = 600_000;

/** The three spellings of a date that RFC 9110, section 5.6.7, makes a recipient accept. */
const imfDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
const rfc850Date = /^[A-Z][a-z]+day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/;
const asctimeDate = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;

/**
 * What `Retry-After` asks for, 1 to 600 s; undefined when it is absent or nonsense. A date counts from the answer's own `Date`, so
 * that the host's clock need not agree with ours, and from ours when it has none.
 */
export function retryAfterMs(header: string | undefined, dateHeader: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : dateMs(text) - (orUndefined(dateMs(dateHeader ?? "")) ?? nowMs);
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, leastMs), mostMs);
}

/** NaN when the text is no HTTP date. */
function dateMs(text: string): number {
  if (asctimeDate.test(text)) return Date.parse(`${text} GMT`);
  return imfDate.test(text) || rfc850Date.test(text) ? Date.parse(text) : Number.NaN;
}

function orUndefined(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : value;
}
