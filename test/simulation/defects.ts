import { aggregatorDefects } from "./defects/aggregator-defects.ts";
import type { Defect } from "./defects/defect.ts";
import { fetcherDefects } from "./defects/fetcher-defects.ts";
import { splitterDefects } from "./defects/splitter-defects.ts";

export type { Defect };

/** Bugs that the simulation has to find: each is what somebody might write, or forget. */
export const defects: readonly Defect[] = [...aggregatorDefects, ...fetcherDefects, ...splitterDefects];

export function findDefect(name: string): Defect {
  const found = defects.find((defect) => defect.name === name);
  if (found === undefined) throw new Error(`there is no defect ${name}: ${defects.map((defect) => defect.name).join(", ")}`);
  return found;
}
