import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addressBucket, clientAddress } from "../../../../services/common/http/client-ip.ts";

describe("clientAddress", () => {
  it.each<[string, string | undefined, string[], number, string | undefined]>([
    ["I1 without proxies the header means nothing", "9.9.9.9", ["1.1.1.1"], 0, "9.9.9.9"],
    ["one proxy: what it appended", "10.0.0.1", ["1.1.1.1, 2.2.2.2"], 1, "2.2.2.2"],
    ["two proxies", "10.0.0.1", ["1.1.1.1, 2.2.2.2, 10.0.0.2"], 2, "2.2.2.2"],
    ["I2 two header lines are one list", "10.0.0.1", ["1.1.1.1", "2.2.2.2"], 1, "2.2.2.2"],
    ["fewer hops than proxies: the furthest there is", "10.0.0.1", ["2.2.2.2"], 3, "2.2.2.2"],
    ["no header behind a proxy", "10.0.0.1", [], 1, "10.0.0.1"],
    ["an empty header", "10.0.0.1", [""], 1, "10.0.0.1"],
    ["markup is no address", "10.0.0.1", ["<script>"], 1, "10.0.0.1"],
    ["a broken hop ends the walk", "10.0.0.1", ["1.1.1.1, unknown, 10.0.0.2"], 3, "10.0.0.2"],
    ["I3 a port", "10.0.0.1", ["2.2.2.2:4711"], 1, "2.2.2.2"],
    ["I4 IPv6 in brackets", "10.0.0.1", ["[2001:db8::1]"], 1, "2001:db8::1"],
    ["IPv6 with a port", "10.0.0.1", ["[2001:db8::1]:443"], 1, "2001:db8::1"],
    ["I5 IPv4-mapped", "::ffff:1.2.3.4", [], 0, "1.2.3.4"],
    ["IPv4-mapped in hexadecimal, forwarded", "10.0.0.1", ["::ffff:102:304"], 1, "1.2.3.4"],
    ["a zone", "fe80::1%eth0", [], 0, "fe80::1"],
    ["spellings only a lenient parser takes", "10.0.0.1", ["0x7f.1"], 1, "10.0.0.1"],
    ["a number", "10.0.0.1", ["2130706433"], 1, "10.0.0.1"],
    ["I10 no address at all", undefined, [], 0, undefined],
    ["no peer, but a trusted proxy on a socket", undefined, ["2.2.2.2"], 1, "2.2.2.2"],
  ])("%s", (_name, peer, forwardedFor, proxies, expected) => {
    expect(clientAddress(peer, forwardedFor, proxies)).toBe(expected);
  });

  it("believes nothing further left than its proxies, whatever a client writes there", () => {
    const hop = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string());
    fc.assert(
      fc.property(fc.array(hop), fc.ipV4(), fc.nat(3), (forged, real, extra) => {
        const appended = [real, ...Array.from({ length: extra }, (_, index) => `10.0.0.${index}`)];
        const header = [[...forged, ...appended].join(", ")];
        expect(clientAddress("10.9.9.9", header, extra + 1)).toBe(real);
      }),
    );
  });
});

describe("addressBucket", () => {
  it.each([
    ["one IPv4 address is one bucket", "1.2.3.4", "1.2.3.5", false],
    ["I6 rotation inside a /64 stays in one bucket", "2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true],
    ["I7 the next /64 of the same /56 is another", "2001:db8:1:2::1", "2001:db8:1:3::1", false],
  ])("%s", (_name, a, b, same) => {
    expect(addressBucket(a) === addressBucket(b)).toBe(same);
  });

  it("I10 has a bucket for connections without an address", () => {
    expect(addressBucket(undefined)).toBe("none");
  });
});
