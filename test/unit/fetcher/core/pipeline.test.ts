import { describe, expect, it } from "vitest";
import { conclusionOf, offsetsOf, partition, recordOf, world } from "./pipeline-world.ts";
import { failure, success, tokenRefresh } from "./records.ts";

describe("the pipeline", () => {
  it("finishes a record when its outcome is acknowledged, not before", async () => {
    const { pipeline, calls, deliveries, finished } = world();
    pipeline.take([recordOf(tokenRefresh(), 5)]);
    await calls[0]?.end(success());
    expect(conclusionOf(deliveries)).toMatchObject({ kind: "outcome", outcome: { status_code: 200 } });
    expect(finished).toEqual([]);
    await deliveries[0]?.end("acknowledged");
    expect(finished).toEqual([{ ...partition, offset: 5 }]);
  });

  it("finishes a refused record when its next attempt's record is acknowledged", async () => {
    const { pipeline, calls, deliveries, finished } = world();
    pipeline.take([recordOf(tokenRefresh(), 5)]);
    await calls[0]?.end(failure({ status: 429 }));
    expect(conclusionOf(deliveries)).toMatchObject({ kind: "retry", refresh: { attempt: 2 } });
    await deliveries[0]?.end("acknowledged");
    expect(offsetsOf(finished)).toEqual([5]);
  });

  it("starts the next call when one ends, while its outcome is still on its way", async () => {
    const { pipeline, calls } = world({ perQueue: 1 });
    pipeline.take([recordOf(tokenRefresh({ ordinal: 0 }), 0), recordOf(tokenRefresh({ ordinal: 1 }), 1)]);
    expect(calls).toHaveLength(1);
    await calls[0]?.end(success());
    expect(calls).toHaveLength(2);
  });

  it("starts the first calls of a large batch before it has taken over the last of its records", () => {
    const { pipeline, calls } = world({ perQueue: 5 });
    const records = Array.from({ length: 100 }, (_, ordinal) => recordOf(tokenRefresh({ ordinal }), ordinal));
    let startedBefore = -1;
    const last = {
      ...recordOf(tokenRefresh(), 100),
      get value() {
        startedBefore = Math.max(startedBefore, calls.length);
        return tokenRefresh({ ordinal: 100 });
      },
    };
    pipeline.take([...records, last]);
    expect(startedBefore).toBe(5);
  });

  it("calls a record once that comes again while it waits, while it is called and while it is delivered, and finishes every one", async () => {
    const { pipeline, calls, deliveries, finished, duplicateCount } = world({ perQueue: 1 });
    const other = tokenRefresh({ ordinal: 9 });
    pipeline.take([recordOf(other, 0), recordOf(tokenRefresh(), 1), recordOf(tokenRefresh(), 2)]);
    await calls[0]?.end(success());
    pipeline.take([recordOf(tokenRefresh(), 3)]);
    await calls[1]?.end(success());
    pipeline.take([recordOf(tokenRefresh(), 4)]);
    expect(offsetsOf(finished)).toEqual([]);
    await deliveries[1]?.end("acknowledged");
    expect(offsetsOf(finished)).toEqual([1, 2, 3, 4]);
    expect(calls).toHaveLength(2);
    expect(duplicateCount()).toBe(3);
  });

  it("finishes a record at once that was finished here less than ten minutes ago, and calls it again after fifteen", async () => {
    const { pipeline, state, calls, deliveries, finished } = world();
    pipeline.take([recordOf(tokenRefresh(), 1)]);
    await calls[0]?.end(success());
    await deliveries[0]?.end("acknowledged");
    state.monotonicMs += 599_000;
    pipeline.take([recordOf(tokenRefresh(), 2)]);
    expect(offsetsOf(finished)).toEqual([1, 2]);
    state.monotonicMs += 301_000;
    pipeline.take([recordOf(tokenRefresh(), 3)]);
    expect(calls).toHaveLength(2);
  });

  it.each([{ attempt: 2 }, { emission: 2 }, { ordinal: 1 }, { refresh_id: "0f9f0cf0-9a8c-4f3e-8a58-0d6e7b1f2a12" }])(
    "takes a record with %o for another one",
    (change) => {
      const { pipeline, calls } = world();
      pipeline.take([recordOf(tokenRefresh(), 1), recordOf(tokenRefresh(change), 2)]);
      expect(calls).toHaveLength(2);
    },
  );

  it("does not call a record past its deadline, whether it was late when it came or while it waited", async () => {
    const { pipeline, state, calls, deliveries } = world({ perQueue: 1 });
    const soon = { deadline: (state.nowMs + 5_000) * 1_000 };
    pipeline.take([recordOf(tokenRefresh({ ...soon, ordinal: 0 }), 0), recordOf(tokenRefresh({ ...soon, ordinal: 1 }), 1)]);
    state.nowMs += 5_000;
    await calls[0]?.end(success());
    pipeline.take([recordOf(tokenRefresh({ ...soon, ordinal: 2 }), 2)]);
    expect(calls).toHaveLength(1);
    const closings = deliveries.slice(1).map(({ what }) => what.conclusion);
    expect(closings).toMatchObject(
      [1, 2].map((ordinal) => ({ outcome: { ordinal, error_detail: "deadline_exceeded", created_at: soon.deadline } })),
    );
  });

  it("does not make an attempt beyond the limit: the token ends as its last attempt did", () => {
    const { pipeline, calls, deliveries } = world();
    const attempts = [{ at: 1_790_000_000_000_000, status: 503, duration_ms: 20, body_bytes: 4, cause: "service_unavailable" }];
    pipeline.take([recordOf(tokenRefresh({ attempt: 4, attempts }))]);
    expect(calls).toEqual([]);
    expect(conclusionOf(deliveries)).toMatchObject({
      outcome: {
        error_code: "invalid_response_status_code",
        error_detail: "service_unavailable",
        status_code: 503,
        created_at: 1_790_000_000_020_000,
        attempts,
      },
    });
  });

  it.each([
    { attempt: 0 },
    { attempt: -1 },
    { attempt: 4 },
    { attempt: 256 },
    { emission: -1 },
    { emission: 256 },
    { ordinal: -1 },
    { token_id: "../7" },
    { max_concurrency: 0 },
    { max_requests_per_second: 0 },
    { max_requests_per_second: -1 },
  ])("buries a record with %o and finishes it", async (senseless) => {
    const { pipeline, calls, finished, buried } = world();
    pipeline.take([recordOf(tokenRefresh(senseless), 8)]);
    await Promise.resolve();
    expect(buried).toHaveLength(1);
    expect(offsetsOf(finished)).toEqual([8]);
    expect(calls).toEqual([]);
  });

  it("does not call a URL that breaks the rules, and says so", () => {
    const { pipeline, state, calls, deliveries } = world();
    state.endpointOk = false;
    pipeline.take([recordOf(tokenRefresh())]);
    expect(calls).toEqual([]);
    expect(conclusionOf(deliveries)).toMatchObject({
      outcome: { error_detail: "blocked_address", status_code: null, response_body: null },
    });
  });

  it("leaves the body out of an outcome that is too large, once, and never tries it for ever", async () => {
    const { pipeline, calls, deliveries, finished, failures } = world();
    pipeline.take([recordOf(tokenRefresh(), 1)]);
    await calls[0]?.end(success());
    await deliveries[0]?.end("too_large");
    expect(conclusionOf(deliveries, 1)).toMatchObject({
      outcome: { metadata: null, content_hash: null, error_code: "unable_to_decode_response", error_detail: "body_too_large" },
    });
    await deliveries[1]?.end("too_large");
    expect(deliveries).toHaveLength(2);
    expect(failures).toHaveLength(1);
    expect(finished).toEqual([]);
  });

  it("keeps the reason of a failure whose body is too large", async () => {
    const { pipeline, calls, deliveries } = world();
    pipeline.take([recordOf(tokenRefresh(), 1)]);
    await calls[0]?.end(failure());
    await deliveries[0]?.end("too_large");
    expect(conclusionOf(deliveries, 1)).toMatchObject({ outcome: { error_detail: "unexpected_status", response_body: null } });
  });
});

describe("a partition that is lost", () => {
  it("takes its waiting records with it, and gives up what was under way", async () => {
    const { pipeline, calls, deliveries, finished } = world({ perQueue: 1 });
    pipeline.take([recordOf(tokenRefresh({ ordinal: 0 }), 0), recordOf(tokenRefresh({ ordinal: 1 }), 1)]);
    pipeline.lost([partition]);
    await calls[0]?.end(success());
    expect(calls).toHaveLength(1);
    expect(deliveries[0]?.what.wanted()).toBe(false);
    await deliveries[0]?.end("abandoned");
    expect(finished).toEqual([]);
    // It came back to us, from the committed offset on: everything is done again.
    pipeline.take([recordOf(tokenRefresh({ ordinal: 0 }), 0), recordOf(tokenRefresh({ ordinal: 1 }), 1)]);
    expect(calls).toHaveLength(2);
  });

  it("leaves the records of other partitions alone", async () => {
    const { pipeline, calls, deliveries } = world();
    pipeline.take([recordOf(tokenRefresh(), 0)]);
    pipeline.lost([{ ...partition, partition: 4 }]);
    await calls[0]?.end(success());
    expect(deliveries[0]?.what.wanted()).toBe(true);
  });

  it("that comes back while its record is called goes on with that call", async () => {
    const { pipeline, calls, deliveries, finished } = world();
    pipeline.take([recordOf(tokenRefresh(), 0)]);
    pipeline.lost([partition]);
    pipeline.take([recordOf(tokenRefresh(), 0)]);
    await calls[0]?.end(success());
    expect(deliveries[0]?.what.wanted()).toBe(true);
    await deliveries[0]?.end("acknowledged");
    expect(finished.length).toBeGreaterThan(0);
    expect(calls).toHaveLength(1);
  });

  it("that comes back while a delivery is given up does not lose the record", async () => {
    const { pipeline, calls, deliveries, finished } = world();
    pipeline.take([recordOf(tokenRefresh(), 0)]);
    await calls[0]?.end(success());
    pipeline.lost([partition]);
    pipeline.take([recordOf(tokenRefresh(), 0)]);
    await deliveries[0]?.end("abandoned");
    expect(calls).toHaveLength(2);
    await calls[1]?.end(success());
    await deliveries[1]?.end("acknowledged");
    expect(new Set(offsetsOf(finished))).toEqual(new Set([0]));
  });
});

describe("a call", () => {
  it("that waits for memory is started when a delivery of a lost partition is given up: nothing else may ever end", async () => {
    const { pipeline, state, calls, deliveries } = world();
    pipeline.take([recordOf(tokenRefresh({ ordinal: 0 }), 0)]);
    await calls[0]?.end(success());
    state.hasRoom = false;
    pipeline.take([{ ...recordOf(tokenRefresh({ ordinal: 1 }), 1), partition: 4 }]);
    pipeline.lost([partition]);
    state.hasRoom = true;
    await deliveries[0]?.end("abandoned");
    expect(calls).toHaveLength(2);
  });

  it("that had to wait for a connection until its lease was over is made when the lease is back", async () => {
    const { pipeline, calls, state, pass, finished } = world();
    pipeline.take([recordOf(tokenRefresh(), 1)]);
    state.mayAct = false;
    await calls[0]?.end("abandoned");
    expect(finished).toEqual([]);
    state.mayAct = true;
    pass(100);
    expect(calls).toHaveLength(2);
  });

  it("that had to wait for a connection until its partition was lost is forgotten", async () => {
    const { pipeline, calls, pass, scheduler, deliveries } = world();
    pipeline.take([recordOf(tokenRefresh(), 1)]);
    pipeline.lost([partition]);
    await calls[0]?.end("abandoned");
    pass(100);
    expect(calls).toHaveLength(1);
    expect([scheduler.waiting, scheduler.started, deliveries.length]).toEqual([0, 0, 0]);
  });

  it("is not started without the lease, and is when it is back", () => {
    const { pipeline, state, calls, alarms } = world();
    state.mayAct = false;
    pipeline.take([recordOf(tokenRefresh())]);
    expect(calls).toEqual([]);
    expect(Math.min(...alarms)).toBe(100);
    state.mayAct = true;
    pipeline.proceed();
    expect(calls).toHaveLength(1);
  });

  it("is not started while there is no room for bodies, and is when an acknowledgement makes some", async () => {
    const { pipeline, state, calls, deliveries } = world();
    pipeline.take([recordOf(tokenRefresh({ ordinal: 0 }), 0)]);
    state.hasRoom = false;
    pipeline.take([recordOf(tokenRefresh({ ordinal: 1 }), 1)]);
    await calls[0]?.end(success());
    expect(calls).toHaveLength(1);
    state.hasRoom = true;
    await deliveries[0]?.end("acknowledged");
    expect(calls).toHaveLength(2);
  });

  it("that waits for nothing but time sets the alarm for it", () => {
    const { pipeline, scheduler, state, calls, alarms } = world();
    scheduler.sleepsUntilMs = state.monotonicMs + 91.5;
    pipeline.take([recordOf(tokenRefresh())]);
    expect(calls).toEqual([]);
    expect(Math.min(...alarms)).toBe(92);
    state.monotonicMs += 92;
    pipeline.proceed();
    expect(calls).toHaveLength(1);
  });
});

describe("a pipeline that stops", () => {
  it("moves what waits below a call that was made, which would be made again, and nothing else", async () => {
    const { pipeline, calls, deliveries, moves, finished } = world({ perQueue: 1 });
    const refresh = (ordinal: number, firstQueuedAt: number) => tokenRefresh({ ordinal, first_queued_at: firstQueuedAt });
    // The second of them was accepted first, and is called first.
    pipeline.take([recordOf(refresh(0, 2), 10), recordOf(refresh(1, 1), 11), recordOf(refresh(2, 3), 12)]);
    const stopping = pipeline.stop();
    await calls[0]?.end(success());
    await deliveries[0]?.end("acknowledged");
    expect(moves.map(({ what }) => what.refreshes.map(({ ordinal }) => ordinal))).toEqual([[0]]);
    await moves[0]?.end("acknowledged");
    await stopping;
    expect(offsetsOf(finished)).toEqual([11, 10]);
  });

  it("starts nothing more and waits for what is under way to be acknowledged", async () => {
    const { pipeline, calls, deliveries, finished } = world({ perQueue: 1 });
    pipeline.take([recordOf(tokenRefresh({ ordinal: 0 }), 0), recordOf(tokenRefresh({ ordinal: 1 }), 1)]);
    let stopped = false;
    const stopping = pipeline.stop().then(() => {
      stopped = true;
    });
    await calls[0]?.end(success());
    expect(calls).toHaveLength(1);
    expect(stopped).toBe(false);
    await deliveries[0]?.end("acknowledged");
    await stopping;
    expect(offsetsOf(finished)).toEqual([0]);
  });

  it("has nothing to wait for when nothing is under way", async () => {
    await world().pipeline.stop();
  });
});
