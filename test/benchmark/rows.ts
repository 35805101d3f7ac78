import { row as api } from "./api.ts";
import type { Row } from "./bench.ts";
import { row as firstToken } from "./first-token.ts";
import { row as hiddenLimit } from "./hidden-limit.ts";
import { row as isolation } from "./isolation.ts";
import { row as latencyBound } from "./latency-bound.ts";
import { row as memory } from "./memory.ts";
import { row as refresh } from "./refresh.ts";
import { row as rival } from "./rival.ts";
import { row as scale } from "./scale.ts";
import { row as throughput } from "./throughput.ts";

/** In the order of the report. */
export const rows: readonly Row[] = [
  throughput,
  rival,
  latencyBound,
  refresh,
  firstToken,
  isolation,
  hiddenLimit,
  api,
  memory,
  scale,
];
