import { expect, it } from "vitest";
import { tokenUrl } from "../../../../services/common/messages/token-url.ts";

it.each([
  ["https://api.game.example/metadata", "7", "https://api.game.example/metadata/7"],
  ["https://api.game.example/metadata/", "7", "https://api.game.example/metadata/7"],
  ["https://api.game.example", "0", "https://api.game.example/0"],
  ["https://api.game.example/", "0", "https://api.game.example/0"],
  [
    "http://[::1]:3000/m",
    "115792089237316195423570985008687907853269984665640564039457584007913129639935",
    "http://[::1]:3000/m/115792089237316195423570985008687907853269984665640564039457584007913129639935",
  ],
])("calls %s for token %s at %s", (metadataApiUrl, tokenId, url) => {
  expect(tokenUrl(metadataApiUrl, tokenId)).toBe(url);
});
