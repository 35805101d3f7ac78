import { createSocket } from "node:dgram";

export interface NameAnswer {
  readonly addresses?: readonly string[];
  readonly ttlSeconds?: number;
  /** 2: SERVFAIL, 3: NXDOMAIN. */
  readonly code?: number;
}

export interface NameServer {
  /** As a resolver takes it. */
  readonly address: string;
  /** `A name` or `AAAA name`, in the order of arrival. */
  readonly asked: readonly string[];
  close(): void;
}

const types: Readonly<Record<number, "A" | "AAAA">> = { 1: "A", 28: "AAAA" };

/** A name server on loopback (RFC 1035, as far as it is needed) that answers by script; undefined: not at all. */
export async function startNameServer(answer: (type: "A" | "AAAA", name: string) => NameAnswer | undefined): Promise<NameServer> {
  const socket = createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", (query, from) => {
    const { name, end } = nameAt(query, 12);
    const type = types[query.readUInt16BE(end)] ?? "A";
    asked.push(`${type} ${name}`);
    const given = answer(type, name);
    if (given !== undefined) socket.send(response(query.subarray(0, end + 4), given), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return { address: `127.0.0.1:${socket.address().port}`, asked, close: () => socket.close() };
}

function nameAt(query: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = [];
  let at = start;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join("."), end: at + 1 };
}

function response(question: Buffer, { addresses = [], ttlSeconds = 60, code = 0 }: NameAnswer): Buffer {
  const header = Buffer.from(question);
  header.writeUInt16BE(0x8180 | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  header.writeUInt32BE(0, 8);
  return Buffer.concat([header, ...addresses.map((address) => resource(address, ttlSeconds))]);
}

function resource(address: string, ttlSeconds: number): Buffer {
  const data = address.includes(":")
    ? Buffer.from(address.replaceAll(":", ""), "hex")
    : Buffer.from(address.split(".").map(Number));
  const head = Buffer.alloc(12);
  // A pointer to the question's name.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(data.length === 16 ? 28 : 1, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttlSeconds, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
