import { createRequire } from "node:module";
import { createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { patchConnections } from "../../../../services/common/kafka/connection-patch.ts";

interface Connection {
  connect(): Promise<unknown>;
  disconnect(): Promise<unknown>;
  send(request: object): Promise<unknown>;
}

const require = createRequire(import.meta.url);
const KafkaConnection = require("kafkajs/src/network/connection.js") as new (options: object) => Connection;
const Encoder = require("kafkajs/src/protocol/encoder.js") as new () => object;
const createSocket = (require("kafkajs/src/network/socketFactory.js") as () => object)();

let server: Server;
let connection: Connection;
let answer: (socket: Socket, correlationId: number) => void;

beforeEach(async () => {
  patchConnections();
  server = createServer((socket) => {
    socket.on("error", () => undefined);
    // Length, kind, version, and then the number that the answer must begin with.
    socket.on("data", (request: Buffer) => answer(socket, request.readInt32BE(8)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const quiet = { debug: () => undefined, error: () => undefined, info: () => undefined, warn: () => undefined };
  const { port } = server.address() as { port: number };
  connection = new KafkaConnection({
    host: "127.0.0.1",
    port,
    socketFactory: createSocket,
    logger: { namespace: () => quiet },
    requestTimeout: 10_000,
    connectionTimeout: 10_000,
  });
});

afterEach(async () => {
  await connection.disconnect();
  await new Promise((resolve) => server.close(resolve));
});

/** A request without a body; what is decoded is what stands behind the number. */
const request = {
  request: { apiKey: 18, apiVersion: 0, apiName: "ApiVersions", encode: async () => new Encoder() },
  response: {
    decode: async (payload: Buffer) => payload.toString(),
    parse: async (text: string) => text,
  },
};

function answerOf(correlationId: number, text: string): Buffer {
  const bytes = Buffer.alloc(8 + text.length);
  bytes.writeInt32BE(4 + text.length, 0);
  bytes.writeInt32BE(correlationId, 4);
  bytes.write(text, 8);
  return bytes;
}

it("an answer that broke off is not taken for the beginning of the next connection's answers", async () => {
  answer = (socket, correlationId) => {
    socket.write(answerOf(correlationId, "a long answer").subarray(0, 12), () => socket.end());
  };
  await connection.connect();
  await expect(connection.send(request)).rejects.toThrow();
  answer = (socket, correlationId) => void socket.write(answerOf(correlationId, "whole"));
  await connection.connect();
  expect(await connection.send(request)).toBe("whole");
});
