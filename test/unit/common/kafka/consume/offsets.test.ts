import { expect, test } from "vitest";
import { chooseStart } from "../../../../../services/common/kafka/consume/offsets.ts";

test.each([
  { when: "nothing is committed", known: { committed: undefined, beginning: 7, end: 9 }, start: { offset: 7 } },
  { when: "an offset in the log is committed", known: { committed: 8, beginning: 7, end: 9 }, start: { offset: 8 } },
  { when: "everything was read", known: { committed: 9, beginning: 0, end: 9 }, start: { offset: 9 } },
  { when: "everything was read and has expired", known: { committed: 9, beginning: 9, end: 9 }, start: { offset: 9 } },
  {
    when: "retention took unread records",
    known: { committed: 6, beginning: 7, end: 9 },
    start: { offset: 7, reset: "expired" },
  },
  { when: "the log is another one", known: { committed: 10, beginning: 0, end: 9 }, start: { offset: 0, reset: "beyond_end" } },
  { when: "we have read further", known: { committed: 3, beginning: 0, end: 9 }, own: 5, start: { offset: 5 } },
  { when: "somebody else has committed further", known: { committed: 6, beginning: 0, end: 9 }, own: 5, start: { offset: 6 } },
  {
    when: "we have read another log",
    known: { committed: 3, beginning: 0, end: 4 },
    own: 5,
    start: { offset: 0, reset: "beyond_end" },
  },
  {
    when: "nothing is committed but we have read",
    known: { committed: undefined, beginning: 0, end: 9 },
    own: 5,
    start: { offset: 5 },
  },
] as const)("reads on in the right place when $when", ({ known, start, ...rest }) => {
  expect(chooseStart(known, "own" in rest ? rest.own : undefined)).toEqual(start);
});
