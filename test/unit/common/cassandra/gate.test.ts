import { describe, expect, it } from "vitest";
import { Gate } from "../../../../services/common/cassandra/gate.ts";

/** A gate with a clock of its own, and requests that end when they are told to. */
function openGate(options: { limit: number; maxWaitMs?: number }) {
  const time = { ms: 0 };
  const gate = new Gate({ maxWaitMs: Number.POSITIVE_INFINITY, ...options, monotonicMs: () => time.ms });
  const started: string[] = [];
  const send = (name: string) => {
    const request = Promise.withResolvers<string>();
    const result = gate.run(() => {
      started.push(name);
      return request.promise;
    });
    return { result, end: () => request.resolve(name), fail: () => request.reject(new Error(name)) };
  };
  return { time, started, send };
}

describe("the gate", () => {
  it("lets as many in as its limit says, the others in the order they came", async () => {
    const { started, send } = openGate({ limit: 2 });
    const [a, b, c, d] = [send("a"), send("b"), send("c"), send("d")];
    expect(started).toEqual(["a", "b"]);
    b.end();
    await b.result;
    expect(started).toEqual(["a", "b", "c"]);
    a.end();
    await a.result;
    expect(started).toEqual(["a", "b", "c", "d"]);
    c.end();
    d.end();
    expect(await Promise.all([c.result, d.result])).toEqual(["c", "d"]);
  });

  it("gives the place of a request that failed to the next", async () => {
    const { started, send } = openGate({ limit: 1 });
    const [a, b] = [send("a"), send("b")];
    a.fail();
    await expect(a.result).rejects.toThrow("a");
    expect(started).toEqual(["a", "b"]);
    b.end();
    await b.result;
  });

  it("refuses who waited too long, unsent, and serves who did not", async () => {
    const { time, started, send } = openGate({ limit: 1, maxWaitMs: 100 });
    const [a, late] = [send("a"), send("late")];
    time.ms = 60;
    const patient = send("patient");
    time.ms = 120;
    a.end();
    await expect(late.result).rejects.toMatchObject({ failure: "unavailable" });
    expect(started).toEqual(["a", "patient"]);
    patient.end();
    await patient.result;
  });

  it("has its places back after everybody waiting was refused", async () => {
    const { time, started, send } = openGate({ limit: 1, maxWaitMs: 100 });
    const [a, late] = [send("a"), send("late")];
    time.ms = 200;
    a.end();
    await expect(late.result).rejects.toMatchObject({ failure: "unavailable" });
    const next = send("next");
    expect(started).toEqual(["a", "next"]);
    next.end();
    await next.result;
  });

  it("never lets more in than its limit while hundreds pass", async () => {
    const gate = new Gate({ limit: 7, maxWaitMs: Number.POSITIVE_INFINITY, monotonicMs: () => 0 });
    let inside = 0;
    let most = 0;
    const work = async () => {
      inside += 1;
      most = Math.max(most, inside);
      await Promise.resolve();
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 500 }, () => gate.run(work)));
    expect({ most, inside }).toEqual({ most: 7, inside: 0 });
  });
});
