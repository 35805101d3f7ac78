import type { Topics } from "../../../services/common/kafka/topics.ts";
import { surroundings } from "../surroundings.ts";

/** Stands for services/common/kafka/topics.ts, which reads a file. */
export function loadTopics(): Topics {
  return surroundings().topics;
}
