import type { Socket } from "node:net";
import type { HostileAnswer } from "./hostile-answers.ts";

/** Sends the bytes as they are told, and ends, resets or keeps the connection. Stops by itself when the reader has gone. */
export function writeHostile(socket: Socket, { bytes, afterwards, drip, forEver }: HostileAnswer): void {
  const content = typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes;
  if (drip !== undefined) dripFrom(socket, content, drip);
  else if (afterwards === "end") socket.end(content);
  else if (afterwards === "reset" && content.length === 0) reset(socket);
  else socket.write(content, () => afterwards === "reset" && reset(socket));
  if (forEver !== undefined) repeat(socket, Buffer.from(forEver, "latin1"));
}

function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy();
}

function dripFrom(socket: Socket, content: Buffer, { fromByte, everyMs }: NonNullable<HostileAnswer["drip"]>): void {
  let sent = fromByte;
  socket.write(content.subarray(0, sent));
  const timer = setInterval(() => {
    socket.write(content.subarray(sent, sent + 1));
    sent += 1;
    if (sent === content.length) clearInterval(timer);
  }, everyMs);
  socket.on("close", () => clearInterval(timer));
}

/** A piece for each turn of the loop: the kernel takes megabytes without delay, and this process has other callers. */
function repeat(socket: Socket, piece: Buffer): void {
  const more = () => {
    if (!socket.destroyed && socket.write(piece)) setImmediate(more);
  };
  socket.on("drain", more);
  more();
}
