import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "cassandra-driver";
import { systemClock } from "../clock.ts";

/** Longer than any one statement takes; a migration that died gives way after it. */
const holdSeconds = 60;

/**
 * One migration at a time in a keyspace: row 0 of schema_migrations, taken by lightweight transaction and gone by itself when
 * its owner dies. The client must be using the keyspace, and the table must exist.
 */
export class MigrationLock {
  readonly #client: Client;
  readonly #owner: string;

  constructor(client: Client, owner: string) {
    this.#client = client;
    this.#owner = owner;
  }

  /** Waits while somebody else holds it; rejects after `timeoutMs`, naming the holder. */
  async take(timeoutMs: number): Promise<void> {
    const query = `INSERT INTO schema_migrations (number, name) VALUES (0, ?) IF NOT EXISTS USING TTL ${holdSeconds}`;
    const startedMs = systemClock.monotonicMs();
    for (;;) {
      const result = await this.#client.execute(query, [this.#owner]);
      const holder: unknown = result.first().get("name");
      // Its own name: the answer to an earlier try was lost.
      if (result.wasApplied() || holder === this.#owner) return;
      if (systemClock.monotonicMs() - startedMs > timeoutMs) throw new Error(`another migration holds the lock: ${holder}`);
      await delay(100);
    }
  }

  /** Before every statement: who was away for too long must not go on beside the next holder. */
  async extend(): Promise<void> {
    const query = `UPDATE schema_migrations USING TTL ${holdSeconds} SET name = ? WHERE number = 0 IF name = ?`;
    const result = await this.#client.execute(query, [this.#owner, this.#owner]);
    if (!result.wasApplied()) throw new Error("the migration lock was lost: this process stood still for too long");
  }

  async release(): Promise<void> {
    await this.#client.execute("DELETE FROM schema_migrations WHERE number = 0 IF name = ?", [this.#owner]);
  }
}
