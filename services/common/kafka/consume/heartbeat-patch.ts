import { createRequire } from "node:module";

interface ConsumerGroupPrototype {
  /** null before the first join, and from when the group says that it does not know the member until it has joined again. */
  memberId: string | null;
  lastRequest: number;
  heartbeat(options: { interval: number }): Promise<void>;
}

let patched = false;

/**
 * Two ways in which a member of kafkajs 2.2.4 falls silent for good. It spaces heartbeats by the wall clock: set back by an hour, it
 * would be silent for an hour, and put out of its group. And where a join is not answered after the group has forgotten the member, it
 * goes on as if it had joined, without an id and so without a heartbeat: nothing ever tells it to join again, unless the heartbeat does.
 */
export function patchHeartbeat(): void {
  if (patched) return;
  patched = true;
  const consumerGroup = createRequire(import.meta.url)("kafkajs/src/consumer/consumerGroup.js") as {
    prototype: ConsumerGroupPrototype;
  };
  const original = consumerGroup.prototype.heartbeat;
  consumerGroup.prototype.heartbeat = async function (
    this: ConsumerGroupPrototype,
    options: { interval: number },
  ): Promise<void> {
    if (this.memberId === null) throw unknownMember();
    if (this.lastRequest > Date.now()) this.lastRequest = 0;
    await original.call(this, options);
  };
}

/** By its type kafkajs takes it for the group's own answer. */
function unknownMember(): Error {
  return Object.assign(new Error("the last join was not answered"), { type: "UNKNOWN_MEMBER_ID" });
}
