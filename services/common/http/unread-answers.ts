import type { Socket } from "node:net";

/** What was written when somebody looked, and when that was. */
interface Debt {
  readonly bytes: number;
  readonly sinceMs: number;
}

/**
 * Closes connections whose client does not read. Node waits for ever, and an answer that nobody fetches stays in memory. At each
 * look the bytes that wait are due; those that still wait `patienceMs` later end the connection, however fast newer ones are asked for.
 */
export class UnreadAnswers {
  readonly #patienceMs: number;
  readonly #debts = new Map<Socket, Debt | undefined>();

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  watch(socket: Socket): void {
    this.#debts.set(socket, undefined);
    socket.once("close", () => this.#debts.delete(socket));
  }

  look(nowMs: number): void {
    for (const [socket, debt] of this.#debts) {
      // `bytesWritten` counts what waits as well.
      const gone = socket.bytesWritten - socket.writableLength;
      if (debt !== undefined && gone < debt.bytes) {
        if (nowMs - debt.sinceMs >= this.#patienceMs) socket.destroy();
      } else {
        const waits = socket.writableLength > 0;
        this.#debts.set(socket, waits ? { bytes: socket.bytesWritten, sinceMs: nowMs } : undefined);
      }
    }
  }
}
