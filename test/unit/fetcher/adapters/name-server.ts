import { createSocket } from "node:dgram";

export interface NameAnswer {
  /** The name that the addresses belong to, when the one asked for is an alias. */
  readonly alias?: string;
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

function response(question: Buffer, { alias, addresses = [], ttlSeconds = 60, code = 0 }: NameAnswer): Buffer {
  const header = Buffer.from(question);
  header.writeUInt16BE(0x8180 | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length + (alias === undefined ? 0 : 1), 6);
  header.writeUInt32BE(0, 8);
  const aliasRecords = alias === undefined ? [] : [resource({ owner: asked, type: 5, data: encoded(alias) }, ttlSeconds)];
  const owner = alias === undefined ? asked : encoded(alias);
  const records = addresses.map((address) => resource({ owner, ...addressData(address) }, ttlSeconds));
  return Buffer.concat([header, ...aliasRecords, ...records]);
}

/** A pointer to the question's name. */
const asked = Buffer.from([0xc0, 0x0c]);

function encoded(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, "latin1")]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function addressData(address: string): { type: number; data: Buffer } {
  return address.includes(":")
    ? { type: 28, data: Buffer.from(address.replaceAll(":", ""), "hex") }
    : { type: 1, data: Buffer.from(address.split(".").map(Number)) };
}

function resource({ owner, type, data }: { owner: Buffer; type: number; data: Buffer }, ttlSeconds: number): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt32BE(ttlSeconds, 4);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([owner, head, data]);
}
