import { expect, it } from "vitest";
import { waitFor } from "../../support/wait-for.ts";

it("returns what satisfied the condition", async () => {
  let count = 0;
  const look = () => {
    count += 1;
    return count;
  };
  expect(await waitFor("three", look, (seen) => seen === 3, { everyMs: 1 })).toBe(3);
});

it("takes a look that throws for not there yet", async () => {
  let count = 0;
  const look = () => {
    count += 1;
    if (count < 3) throw new Error("not yet");
    return "there";
  };
  expect(await waitFor("it", look, (seen) => seen === "there", { everyMs: 1 })).toBe("there");
});

it("gives up at its bound and says what it saw last", async () => {
  const waiting = waitFor(
    "a full glass",
    () => ({ glass: "half" }),
    () => false,
    { withinMs: 20, everyMs: 1 },
  );
  await expect(waiting).rejects.toThrow("a full glass: not within 20 ms; last seen: { glass: 'half' }");
});

it("gives up at its bound and says what was thrown last", async () => {
  const broken = () => {
    throw new Error("no connection");
  };
  await expect(waitFor("it", broken, () => true, { withinMs: 20, everyMs: 1 })).rejects.toThrow("no connection");
});
