import { readFileSync } from "node:fs";
import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { serviceNames } from "../../deploy/development/service-process.ts";
import { addressPolicy, classifyAddress } from "../../services/common/http/address-guard.ts";
import { loadTopics } from "../../services/common/kafka/topics.ts";
import { forbiddenAddresses } from "../support/metadata-api/forbidden-places.ts";

const read = (path: string) => readFileSync(new URL(`../../deploy/${path}`, import.meta.url), "utf8");

interface Scaling {
  topic: string;
  group: string;
  min: number;
  max: number;
}

interface Values {
  services: Record<string, { scaling?: Scaling }>;
  networkPolicy: { deniedRanges: { ipv4: string[]; ipv6: string[] } };
}

const values: Values = parse(read("helm/values.yaml"));
const topics = loadTopics();

describe("the Helm chart", () => {
  it("creates the topics of deploy/topics.yaml", () => {
    // A chart cannot read a file outside of its folder.
    expect(read("helm/files/topics.yaml")).toBe(read("topics.yaml"));
  });

  it("runs every service", () => {
    expect(Object.keys(values.services).toSorted()).toEqual(serviceNames.toSorted());
  });

  const scaled = Object.entries(values.services).flatMap(([name, { scaling }]) =>
    scaling === undefined ? [] : [{ name, scaling }],
  );

  it.each(scaled)(
    "scales $name by the lag of its own group on a topic that has a partition for each instance",
    ({ name, scaling }) => {
      const topic = topics.all.find((candidate) => candidate.name === scaling.topic);
      expect(scaling.group).toBe(name);
      expect(scaling.max).toBeLessThanOrEqual(topic?.partitions ?? 0);
      expect(scaling.min).toBeGreaterThan(0);
    },
  );

  it("never scales by the lag of a delay tier, which is what a tier is for", () => {
    const tiers = topics.all.filter(({ delayMs }) => delayMs !== null).map(({ name }) => name);
    expect(tiers.length).toBeGreaterThan(0);
    expect(scaled.map(({ scaling }) => scaling.topic).filter((topic) => tiers.includes(topic))).toEqual([]);
  });

  const { ipv4, ipv6 } = values.networkPolicy.deniedRanges;
  const ranges = [...ipv4, ...ipv6].map((range) => ipaddr.parseCIDR(range));
  const isDenied = (text: string): boolean => {
    const address = ipaddr.parse(text);
    return ranges.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));
  };

  it.each(forbiddenAddresses.map(([address]) => address))("keeps the fetcher's packets from %s, as its guard does", (address) => {
    expect(isDenied(address)).toBe(true);
  });

  it("denies nothing that the guard lets through", () => {
    const policy = addressPolicy({ METADATA_API_ALLOWED_RANGES: [], METADATA_API_ALLOWED_PORTS: ["443"] });
    for (const range of [...ipv4, ...ipv6]) {
      const version = range.includes(":") ? ipaddr.IPv6 : ipaddr.IPv4;
      expect(classifyAddress(version.networkAddressFromCIDR(range).toString(), policy), range).toBeDefined();
      expect(classifyAddress(version.broadcastAddressFromCIDR(range).toString(), policy), range).toBeDefined();
    }
  });
});
