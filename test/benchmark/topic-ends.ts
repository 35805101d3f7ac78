import { type Admin, Kafka, logLevel } from "kafkajs";

/** How many records a topic has got so far. */
export class TopicEnds {
  readonly #admin: Admin;
  readonly #topic: string;

  static async open(environment: Readonly<Record<string, string>>, topic: string): Promise<TopicEnds> {
    const brokers = (environment.KAFKA_BROKERS ?? "").split(",");
    const admin = new Kafka({ brokers, clientId: "benchmark", logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    return new TopicEnds(admin, topic);
  }

  private constructor(admin: Admin, topic: string) {
    this.#admin = admin;
    this.#topic = topic;
  }

  async total(): Promise<number> {
    const partitions = await this.#admin.fetchTopicOffsets(this.#topic);
    return partitions.reduce((sum, { high }) => sum + Number(high), 0);
  }

  close(): Promise<void> {
    return this.#admin.disconnect();
  }
}
