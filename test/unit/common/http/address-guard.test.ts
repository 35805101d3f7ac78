import { describe, expect, it } from "vitest";
import { addressPolicy, classifyAddress, loopbackAddresses } from "../../../../services/common/http/address-guard.ts";

const publicOnly = addressPolicy({ METADATA_API_ALLOWED_RANGES: [], METADATA_API_ALLOWED_PORTS: ["80", "443"] });
const allowing = (...ranges: string[]) =>
  addressPolicy({ METADATA_API_ALLOWED_RANGES: ranges, METADATA_API_ALLOWED_PORTS: ["80", "443"] });

describe("the address guard", () => {
  it.each([
    ["0.0.0.0", "not_global_unicast"],
    ["0.1.2.3", "not_global_unicast"],
    ["10.254.0.0", "private_range"],
    ["100.64.0.1", "cgnat_range"],
    ["100.100.100.200", "cgnat_range"],
    ["127.0.0.1", "not_global_unicast"],
    ["127.254.254.254", "not_global_unicast"],
    ["168.63.129.16", "special_purpose"],
    ["169.254.169.254", "not_global_unicast"],
    ["169.254.170.2", "not_global_unicast"],
    ["172.16.10.65", "private_range"],
    ["172.31.255.255", "private_range"],
    ["192.0.0.0", "special_purpose"],
    ["192.0.0.192", "special_purpose"],
    ["192.0.2.255", "special_purpose"],
    ["192.31.196.1", "special_purpose"],
    ["192.52.193.1", "special_purpose"],
    ["192.88.99.3", "special_purpose"],
    ["192.168.10.65", "private_range"],
    ["192.175.48.1", "special_purpose"],
    ["198.18.0.0", "special_purpose"],
    ["198.51.100.65", "special_purpose"],
    ["203.0.113.6", "special_purpose"],
    ["224.1.2.3", "not_global_unicast"],
    ["233.252.0.16", "not_global_unicast"],
    ["239.255.255.250", "not_global_unicast"],
    ["240.240.240.240", "special_purpose"],
    ["255.255.255.255", "not_global_unicast"],
    ["::", "not_global_unicast"],
    ["::1", "not_global_unicast"],
    ["::7f00:1", "ipv6_embedding"],
    ["::ffff:127.0.0.1", "ipv6_embedding"],
    ["::ffff:0:127.0.0.1", "ipv6_embedding"],
    ["::ffff:8.8.8.8", "ipv6_embedding"],
    ["64:ff9b::c0a8:1", "ipv6_embedding"],
    ["64:ff9b:1::dead:beef", "ipv6_embedding"],
    ["100::1", "special_purpose"],
    ["100:0:0:1::1", "special_purpose"],
    ["2001::1", "ipv6_embedding"],
    ["2001:2::1", "special_purpose"],
    ["2001:10::1", "special_purpose"],
    ["2001:20::1", "special_purpose"],
    ["2001:db8::1", "special_purpose"],
    ["2002:c0a8:1::1", "ipv6_embedding"],
    ["3fff::1", "special_purpose"],
    ["5f00::1", "special_purpose"],
    ["fc00::1", "private_range"],
    ["fd00:ec2::254", "private_range"],
    ["fd7a:115c:a1e0::1", "private_range"],
    ["fe80::1", "not_global_unicast"],
    ["febf:ffff::1", "not_global_unicast"],
    ["fec0::1", "private_range"],
    ["ff02::1", "not_global_unicast"],
    ["2620:4f:8000::1", "special_purpose"],
    ["api.example.com", "not_an_address"],
    ["", "not_an_address"],
  ])("denies %s (%s)", (address, reason) => {
    expect(classifyAddress(address, publicOnly)).toBe(reason);
  });

  it.each([
    "8.8.8.8",
    "1.1.1.1",
    "100.63.255.255",
    "100.128.0.1",
    "172.32.0.1",
    "168.63.129.17",
    "2606:4700::1111",
    "2001:4860:4860::8888",
  ])("lets the public address %s through", (address) => expect(classifyAddress(address, publicOnly)).toBeUndefined());

  it("opens exactly the ranges that the operator allows", () => {
    const policy = allowing("10.20.0.0/16", "::1/128");
    expect(classifyAddress("10.20.255.255", policy)).toBeUndefined();
    expect(classifyAddress("::1", policy)).toBeUndefined();
    expect(classifyAddress("10.21.0.0", policy)).toBe("private_range");
    expect(classifyAddress("127.0.0.1", policy)).toBe("not_global_unicast");
    // The same IPv4 address in IPv6 clothes was not allowed.
    expect(classifyAddress("::ffff:10.20.0.1", policy)).toBe("ipv6_embedding");
  });

  it.each(["localhost", "LOCALHOST", "localhost.", "api.localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"])(
    "takes %s for this machine",
    (name) => {
      expect(loopbackAddresses(name, publicOnly)).toEqual([]);
      expect(loopbackAddresses(name, allowing("127.0.0.0/8"))).toEqual(["127.0.0.1"]);
      expect(loopbackAddresses(name, allowing("127.0.0.0/8", "::1/128"))).toEqual(["127.0.0.1", "::1"]);
    },
  );

  it.each(["api.example.com", "localhost.example.com", "notlocalhost"])("takes %s for another machine", (name) => {
    expect(loopbackAddresses(name, publicOnly)).toBeUndefined();
  });
});
