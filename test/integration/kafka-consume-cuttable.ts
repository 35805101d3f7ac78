import { connect, type Socket } from "node:net";
import { Kafka, logLevel } from "kafkajs";

const keys = { offsetCommit: 8, findCoordinator: 10, heartbeat: 12 };

export type Cut =
  | "nothing"
  /** No connection lives, none can be made. */
  | "everything"
  /** Whoever looks for the group's coordinator is cut off. */
  | "coordinator"
  /** The coordinator that is known cannot be reached; whoever looks for it again finds one that can. */
  | "known coordinator"
  /** The connections of now stay open, and nothing comes over them any more. */
  | "answers";

/** A client whose connections can be cut. */
export function cuttableClient(clientId: string) {
  const sockets = new Set<Socket>();
  let cut: Cut = "nothing";
  const isCut = (asked: number): boolean => {
    if (cut === "coordinator") return asked === keys.findCoordinator;
    if (cut !== "known coordinator") return false;
    if (asked === keys.findCoordinator) cut = "nothing";
    return asked === keys.offsetCommit || asked === keys.heartbeat;
  };
  const kafka = new Kafka({
    brokers: (process.env.KAFKA_BROKERS ?? "127.0.0.1:9092").split(","),
    clientId,
    logLevel: logLevel.NOTHING,
    requestTimeout: 2_000,
    retry: { initialRetryTime: 50, retries: 1 },
    socketFactory: ({ host, port, onConnect }) => {
      // Nobody listens on port 1.
      const socket = connect(cut === "everything" ? 1 : port, host, onConnect);
      const write = socket.write.bind(socket);
      socket.write = (bytes: Uint8Array) => {
        // A request begins with its length and its kind.
        const asked = Buffer.from(bytes).readInt16BE(4);
        if (isCut(asked)) socket.destroy(new Error("cut"));
        return write(bytes);
      };
      socket.on("error", () => undefined);
      sockets.add(socket);
      return socket;
    },
  });
  return {
    kafka,
    cut: (what: Cut) => {
      cut = what;
      if (what === "everything") for (const socket of sockets) socket.destroy(new Error("cut"));
      if (what === "answers") for (const socket of sockets) socket.pause();
    },
  };
}
