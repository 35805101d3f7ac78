import fc from "fast-check";
import { expect, it } from "vitest";
import { checkOutcome } from "../../../services/aggregator/core/outcome.ts";
import { noProgress, type Progress, ProgressDraft } from "../../../services/aggregator/core/progress.ts";
import { failure, outcomeRecord, success } from "./outcomes.ts";

const total = 20;

/** As it is stored: with memory of its own, in Buffers. */
const frozen = (progress: Progress): Progress => ({
  ...structuredClone(progress),
  done: Buffer.from(progress.done),
  failed: Buffer.from(progress.failed),
});

it("gives values away that no later outcome changes, whenever they are taken, and leaves alone what it began with", () => {
  const step = fc.record({ fails: fc.boolean(), looksAtValue: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: total }), (steps) => {
      const stored = frozen(noProgress(total));
      const draft = new ProgressDraft(stored);
      const taken = [{ value: stored, copy: frozen(stored) }];
      for (const [ordinal, { fails, looksAtValue }] of steps.entries()) {
        const record = outcomeRecord(ordinal + 1, { ordinal, total, ...(fails ? failure() : success("A")) });
        draft.count(checkOutcome(record, 1), false);
        if (looksAtValue) taken.push({ value: draft.value, copy: frozen(draft.value) });
      }
      for (const { value, copy } of taken) expect(frozen(value)).toEqual(copy);
      expect(draft.value.succeededCount + draft.value.failedCount).toBe(steps.length);
      expect(draft.isCompleted()).toBe(steps.length === total);
    }),
  );
});
