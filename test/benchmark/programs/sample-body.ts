/**
 * The metadata of a token as the benchmark's API answers it: plausible JSON of exactly this many bytes, always the same. Put together
 * from text that is made once, because the API has to be much cheaper than its callers.
 */
export function sampleBody(tokenId: string, bytes: number): string {
  const tail = tailOf(bytes - head.length - middle.length - 2 * tokenId.length);
  return head + tokenId + middle + tokenId + tail;
}

const head = '{"name":"Token #';
const middle = '","image":"https://cdn.example/';
const traits = ["Level", "Strength", "Agility", "Wisdom", "Luck", "Armour"];
const attributes = traits.map((trait_type, index) => ({ trait_type, value: (index * 37) % 100 }));
const text = "Found in the third age under the ruins of the northern gate, and never seen since. ";
const tails = new Map<number, string>();

function tailOf(bytes: number): string {
  const known = tails.get(bytes);
  if (known !== undefined) return known;
  const before = `.png","attributes":${JSON.stringify(attributes)},"description":"`;
  const padding = bytes - before.length - 2;
  if (padding < 0) throw new RangeError(`no metadata fits into ${bytes} bytes beside its token id`);
  const tail = `${before}${text.repeat(Math.ceil(padding / text.length)).slice(0, padding)}"}`;
  tails.set(bytes, tail);
  return tail;
}
