import type { RawRecord } from "../../../services/common/kafka/contracts.ts";
import type { Tools } from "../program.ts";
import { logRanges, readLog } from "../read-log.ts";
import { type DeadLetter, letterOf, type Marker, markerOf } from "./letter.ts";

/** A letter with what was decided about it; undefined while it is open. */
export interface SettledLetter extends DeadLetter {
  readonly marker: Marker | undefined;
}

/** Every letter that the topic keeps, oldest first, without its value. */
export async function readLetters(tools: Tools): Promise<SettledLetter[]> {
  const letters: DeadLetter[] = [];
  const markers = new Map<string, Marker>();
  await readDeadLetterTopic(tools, (record) => {
    const marker = markerOf(record);
    if (marker === undefined) letters.push(kept(letterOf(record)));
    // Of two decisions the later one holds.
    else if ((markers.get(marker.id)?.atMs ?? 0) <= marker.atMs) markers.set(marker.id, marker);
  });
  return letters.map((letter) => ({ ...letter, marker: markers.get(letter.id) })).sort((a, b) => a.atMs - b.atMs);
}

/** Headers as text: their bytes are cut out of what was fetched, and would keep the whole of it in memory. */
function kept(letter: DeadLetter): DeadLetter {
  const headers = Object.entries(letter.headers).map(([name, value]) => [name, String(value)]);
  return { ...letter, headers: Object.fromEntries(headers) };
}

/** Each record of the dead letter topic, markers included, up to its end as it is now. */
export async function readDeadLetterTopic(
  { kafka, topics, settings }: Tools,
  onRecord: (record: RawRecord) => void | Promise<void>,
): Promise<void> {
  const topic = topics.deadLetter;
  const ranges = await logRanges(kafka, topic.name);
  await readLog(kafka, { topic, ranges, groupPrefix: settings.GROUP_PREFIX, onRecord });
}
