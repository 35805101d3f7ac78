import type { ServerStatus } from "./lifecycle.ts";
import { paint } from "./reporter.ts";

const columns = ["server", "version", "state", "pid", "port", "RSS", "uptime"] as const;
const colours = { running: "green", "not answering": "yellow", crashed: "red", stopped: "dim" } as const;

/** The table that `status` prints: aligned columns, no trailing blanks. */
export function statusTable(servers: readonly ServerStatus[], stream: NodeJS.WriteStream): string {
  const rows = [columns, ...servers.map(cells)];
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  // Coloured last: escape sequences have a length but no width.
  return lines.map((line, index) => colourState(line, servers[index - 1], stream)).join("\n");
}

function cells(server: ServerStatus): string[] {
  return [
    server.name,
    server.version,
    server.state,
    server.pid?.toString() ?? "-",
    server.ports[0]?.toString() ?? "-",
    server.residentBytes === undefined ? "-" : `${Math.round(server.residentBytes / 1024 ** 2)} MiB`,
    server.uptimeMs === undefined ? "-" : duration(server.uptimeMs),
  ];
}

function colourState(line: string, server: ServerStatus | undefined, stream: NodeJS.WriteStream): string {
  return server === undefined ? line : line.replace(server.state, paint(stream, colours[server.state], server.state));
}

/** The two largest units that matter: "42 s", "5 min 3 s", "2 h 10 min". */
function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
