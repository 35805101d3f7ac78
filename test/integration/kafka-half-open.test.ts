import { afterEach, beforeEach, expect, it } from "vitest";
import { stackEnvironment } from "../../deploy/development/stack.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

let wire: TcpProxy;

beforeEach(async () => {
  wire = await TcpProxy.to(stackEnvironment().KAFKA_BROKERS ?? "");
});

afterEach(() => wire.down());

it("a broker that was silent when a connection was made is asked for its versions again, and not given up for ever", async () => {
  const logger = createLogger("test", "silent");
  const kafka = createKafka({ brokers: [wire.address], clientId: "half-open", requestTimeoutMs: 2_000, logger });
  const admin = kafka.admin();
  wire.inject("toClient", { blackHole: true });
  await expect(admin.listTopics()).rejects.toThrow();
  wire.heal();
  await admin.connect();
  expect(await admin.listTopics()).not.toHaveLength(0);
  await admin.disconnect();
});
