/** Numbers from 0 to below 1, in a sequence that its seed decides. */
export type Random = () => number;

/**
 * The chance of one call: it depends on seed, token and number of the call only, not on the order in which calls of other tokens
 * arrive, so a run can be repeated however its connections interleave.
 */
export function chanceOf(seed: number, tokenId: string, callNumber: number): Random {
  return mulberry32(fnv1a(`${seed}/${tokenId}/${callNumber}`));
}

/** 32-bit FNV-1a over the characters. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/** Tommy Ettinger's 32-bit generator, public domain: small, quick and good enough for shares. */
function mulberry32(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
