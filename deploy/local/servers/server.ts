import type { Package } from "../packages.ts";
import type { NamedPort } from "../ports.ts";
import type { ServerName, StackSettings } from "../settings.ts";

export interface Command {
  readonly file: string;
  readonly arguments: readonly string[];
}

/** What the supervisor has to know about a kind of server. */
export interface ServerKind {
  readonly name: ServerName;
  /** As its makers write it, for messages. */
  readonly title: string;
  version(settings: StackSettings): string;
  /** The port that clients use comes first. */
  ports(settings: StackSettings): readonly NamedPort[];
  /** What has to be fetched before it can run on this machine. Throws a `StackProblem` when the machine lacks what cannot be fetched. */
  packages(settings: StackSettings): readonly Package[];
  /** Writes the configuration and, the first time, lays out the data folder. Runs before every start. */
  prepare(settings: StackSettings): Promise<void>;
  command(settings: StackSettings): Command;
  /** Resolves when the server has answered a request of its own protocol, rejects when it has not. */
  answers(settings: StackSettings): Promise<void>;
  /** How long an orderly stop may take before the process is killed. */
  readonly stopWithinMs: number;
}
