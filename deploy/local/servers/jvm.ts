import { installedJavas, type Java } from "../java.ts";
import { StackProblem } from "../problem.ts";

/**
 * Kafka 4 wants Java 17 or later, Cassandra 5.0 runs on 17 but on none later (its list of opened JDK internals is made for 17),
 * so both run on 17.
 */
const major = 17;

export function java17(server: string): Java {
  const javas = installedJavas();
  const found = javas.find((java) => java.major === major);
  if (found !== undefined) return found;
  const others =
    javas.length === 0 ? "none was found" : `found only ${javas.map((java) => `${java.major} in ${java.home}`).join(", ")}`;
  throw new StackProblem(
    `${server} needs Java ${major} and ${others}; install it (Debian: apt-get install openjdk-${major}-jre-headless) or set JAVA_HOME to one`,
  );
}
