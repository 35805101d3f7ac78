import { connect, type Socket } from "node:net";
import { Kafka, logLevel } from "kafkajs";

const findCoordinatorKey = 10;

/** A client whose connections can be cut, all of them or those that look for the group's coordinator. */
export function cuttableClient(clientId: string) {
  const sockets = new Set<Socket>();
  let cut: "nothing" | "everything" | "coordinator" = "nothing";
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
        if (cut === "coordinator" && asked === findCoordinatorKey) socket.destroy(new Error("cut"));
        return write(bytes);
      };
      socket.on("error", () => undefined);
      sockets.add(socket);
      return socket;
    },
  });
  return {
    kafka,
    cut: (what: typeof cut) => {
      cut = what;
      if (what === "everything") for (const socket of sockets) socket.destroy(new Error("cut"));
    },
  };
}
