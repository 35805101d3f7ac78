import { expect, it } from "vitest";
import { parseAddress } from "../../../../services/common/messages/address.ts";

const lower = "0x95cf5c1b78ed03db3a1d69e722f2e2fa40cdf584";

it.each([
  ["lower case", lower],
  ["upper case", `0x${lower.slice(2).toUpperCase()}`],
  ["the checksum's mixed case", "0x95cf5C1b78eD03db3a1d69e722f2E2FA40CDf584"],
])("knows an address in %s as the same", (_what, text) => {
  expect(parseAddress(text)).toBe(lower);
});

it.each([
  ["empty", ""],
  ["no prefix", lower.slice(2)],
  ["an upper-case prefix", `0X${lower.slice(2)}`],
  ["a digit less", lower.slice(0, -1)],
  ["a digit more", `${lower}0`],
  ["another letter", `${lower.slice(0, -1)}g`],
  ["a blank after", `${lower} `],
  ["a line end after", `${lower}\n`],
])("refuses %s", (_what, text) => {
  expect(parseAddress(text)).toBeUndefined();
});
