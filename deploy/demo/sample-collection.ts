import { type Behaviour, type MetadataApi, startMetadataApi } from "../../test/support/metadata-api.ts";

/** Owners may ask for this many at once: specification section 8. */
const requestedCount = 1000;

/** Heroes of a small game. The last of the requested were never minted, so the project never registered them. */
export const requestedTokenIds = Array.from({ length: requestedCount }, (_, index) => String(index + 1));
export const mintedTokenIds = requestedTokenIds.slice(0, -6);

interface Oddity {
  readonly what: string;
  readonly tokenIds: readonly string[];
  readonly behaviours: readonly [Behaviour, ...Behaviour[]];
}

const every = (step: number, first: number, count: number) =>
  Array.from({ length: count }, (_, index) => String(first + index * step));

/** What makes this API an ordinary one. Everything else answers at once, more or less. */
export const oddities: readonly Oddity[] = [
  { what: "slow (1.2 s)", tokenIds: every(31, 17, 30), behaviours: [{ delayMs: 1_200 }] },
  { what: "503 at first", tokenIds: every(111, 50, 8), behaviours: [{ status: 503 }, {}] },
  { what: "429 at first, Retry-After: 1", tokenIds: ["404", "808"], behaviours: [{ status: 429, retryAfter: 1 }, {}] },
  { what: "404", tokenIds: every(77, 13, 12), behaviours: [{ status: 404 }] },
  {
    what: "an HTML page instead of JSON",
    tokenIds: every(190, 91, 5),
    behaviours: [{ body: "<html><body>Please log in</body></html>", headers: { "content-type": "text/html" } }],
  },
  { what: "no answer at all", tokenIds: ["256", "512"], behaviours: [{ hang: true }] },
];

const classes = ["Ranger", "Smith", "Alchemist", "Bard", "Cartographer"];
const homes = ["Ash Harbour", "Low Fen", "Three Mills", "Highmoor"];

/** `level` changes with every start: something to refresh. */
function heroOf(tokenId: string, season: number): object {
  const id = Number(tokenId);
  return {
    name: `Hero #${tokenId}`,
    description: "A hero of a small game",
    image: `https://cdn.example/heroes/${tokenId}.png`,
    attributes: [
      { trait_type: "Class", value: classes[id % classes.length] },
      { trait_type: "Home", value: homes[(id >> 2) % homes.length] },
      { trait_type: "Level", value: 1 + ((id * 7 + season) % 60) },
    ],
  };
}

/** The collection's Metadata API on loopback. */
export async function startSampleApi(port = 0): Promise<MetadataApi> {
  const season = Math.floor(Date.now() / 1000);
  const api = await startMetadataApi({ port, metadata: (tokenId) => heroOf(tokenId, season) });
  api.otherwise((tokenId) => ({ delayMs: 10 + ((Number(tokenId) * 13) % 60) }));
  for (const { tokenIds, behaviours } of oddities) for (const tokenId of tokenIds) api.script(tokenId, behaviours);
  return api;
}
