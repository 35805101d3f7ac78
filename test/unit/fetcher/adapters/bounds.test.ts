import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { MetadataApi } from "../../../../services/fetcher/adapters/metadata-api.ts";
import { hostileAnswers } from "../../../support/metadata-api/hostile-answers.ts";
import { writeHostile } from "../../../support/metadata-api/hostile-writer.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { failureOf, guardedApi } from "./guarded-api.ts";
import { type RawServer, startRawServer } from "./raw-server.ts";

const atOnce = 256;
const capBytes = 262_144;
/** What is read from a socket in one go: the piece that goes over the cap is counted, and then no more is read. */
const pieceBytes = 65_536;

let api: MetadataApi;
let server: RawServer;
beforeEach(() => {
  // Long: it is the cap that is to end these calls, also on a machine that has other things to do.
  api = guardedApi({ timeoutMs: 15_000 });
});
afterEach(async () => {
  api.close();
  await server.close();
});

const callAll = () =>
  Promise.all(Array.from({ length: atOnce }, (_, id) => api.call({ projectId: 1, origin: server.origin, path: `/${id}` })));
const held = (bytes: number) =>
  waitFor(
    "bytes held",
    () => api.heldBytes,
    (now) => now === bytes,
  );

describe("256 hosts at once", () => {
  it("that send bodies without end are each cut off at the cap, and never hold more than that together", async () => {
    const chunk = `3e80\r\n${"x".repeat(16_000)}\r\n`;
    const sockets: Socket[] = [];
    const taken: number[] = [];
    let mostHeld = 0;
    server = await startRawServer((socket) => {
      sockets.push(socket);
      socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`);
      socket.on("drain", () => {
        mostHeld = Math.max(mostHeld, api.heldBytes);
      });
      socket.on("close", () => taken.push(socket.bytesWritten - socket.writableLength));
    });
    const calls = callAll();
    // All 256 are in mid-body; only now they go on, and on.
    mostHeld = await held(atOnce * 16_000);
    for (const socket of sockets) writeHostile(socket, { bytes: chunk, forEver: chunk });
    const results = await calls;
    for (const result of results) {
      expect(failureOf(result)).toMatchObject({ detail: "body_too_large", status: 200 });
      expect(result.bodyBytes).toBeGreaterThan(capBytes);
      expect(result.bodyBytes).toBeLessThanOrEqual(capBytes + pieceBytes);
    }
    await waitFor(
      "the connections to be dropped",
      () => taken.length,
      (count) => count === atOnce,
    );
    // With what was on its way in the kernel's buffers when the connection was dropped, and was read by nobody.
    expect(Math.max(...taken)).toBeLessThan(2 * 1_048_576);
    expect(mostHeld).toBeLessThanOrEqual(atOnce * (capBytes + pieceBytes));
    expect([api.heldBytes, api.underWay, api.idleConnections, server.openCount]).toEqual([0, 0, 0, 0]);
  });

  it("that stop in mid-body are counted with all that they hold, and let go at the deadline", async () => {
    api = guardedApi({ timeoutMs: 5_000 });
    const sentBytes = 50_000;
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${capBytes}\r\n\r\n`;
    server = await startRawServer((socket) => void socket.write(head + "x".repeat(sentBytes)));
    const results = callAll();
    // What the pipeline asks before it makes another call (hasRoom): with a window of 12 MiB it would make none now.
    await held(atOnce * sentBytes);
    for (const result of await results) expect(failureOf(result)).toMatchObject({ detail: "timeout", bodyBytes: sentBytes });
    expect(api.heldBytes).toBe(0);
  });

  it("that refuse at length are held by no more than what is shown of them", async () => {
    let mostHeld = 0;
    server = await startRawServer((socket) => {
      writeHostile(socket, hostileAnswers["500-with-a-body-for-ever"]);
      socket.on("drain", () => {
        mostHeld = Math.max(mostHeld, api.heldBytes);
      });
    });
    for (const result of await callAll()) {
      expect(failureOf(result)).toMatchObject({ detail: "unexpected_status", status: 500 });
      expect(failureOf(result).excerpt).toBe("x".repeat(4_096));
    }
    expect(mostHeld).toBeLessThanOrEqual(atOnce * pieceBytes);
    expect([api.heldBytes, api.underWay, api.idleConnections]).toEqual([0, 0, 0]);
  });
});
