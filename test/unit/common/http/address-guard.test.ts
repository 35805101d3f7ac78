import { describe, expect, it } from "vitest";
import { addressPolicy, classifyAddress, loopbackAddresses } from "../../../../services/common/http/address-guard.ts";
import { forbiddenAddresses } from "../../../support/metadata-api/forbidden-places.ts";

const publicOnly = addressPolicy({ METADATA_API_ALLOWED_RANGES: [], METADATA_API_ALLOWED_PORTS: ["80", "443"] });
const allowing = (...ranges: string[]) =>
  addressPolicy({ METADATA_API_ALLOWED_RANGES: ranges, METADATA_API_ALLOWED_PORTS: ["80", "443"] });

describe("the address guard", () => {
  it.each([...forbiddenAddresses, ["api.example.com", "not_an_address"] as const, ["", "not_an_address"] as const])(
    "denies %s (%s)",
    (address, reason) => {
      expect(classifyAddress(address, publicOnly)).toBe(reason);
    },
  );

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
