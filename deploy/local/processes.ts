import { accessSync, constants, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** A process id alone names nobody: the kernel reuses it. Together with the start time it does, until the next boot. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks between boot and the start of the process. */
  readonly startTicks: string;
  readonly bootId: string;
}

/** The identity of a live process; `undefined` for one that is gone or a zombie (which `kill -0` would call alive). */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the command in parentheses and may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, startTicks] = [fields[0], fields[19]];
  if (startTicks === undefined || (isDeadState(state) && countThreads(pid) <= 1)) return undefined;
  return { pid, startTicks, bootId: bootId() };
}

/** Whether the process recorded earlier still runs, and is still the one that was recorded. */
export function isSameProcess(recorded: ProcessIdentity): boolean {
  const now = identify(recorded.pid);
  return now !== undefined && now.startTicks === recorded.startTicks && now.bootId === recorded.bootId;
}

export function commandLine(pid: number): string {
  return (readText(`/proc/${pid}/cmdline`) ?? "").replaceAll("\0", " ").trim();
}

export function residentBytes(pid: number): number | undefined {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readText(`/proc/${pid}/status`) ?? "")?.[1];
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
}

/** The process that listens on a TCP port, as far as this user may see it. */
export function listenerOf(port: number): number | undefined {
  const inode = listeningInode(port);
  if (inode === undefined) return undefined;
  return processIds().find((pid) => openFiles(pid).includes(`socket:[${inode}]`));
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The first executable of that name in PATH. */
export function findInPath(name: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(":").filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isDeadState(state: string | undefined): boolean {
  return state === "Z" || state === "X";
}

/** A killed process is called a zombie as soon as its first thread is gone; its files and ports are open until the last one is. */
function countThreads(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
  } catch {
    return 0;
  }
}

function bootId(): string {
  return readText("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
}

function listeningInode(port: number): string | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const listening = "0A";
  const rows = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) => (readText(file) ?? "").split("\n").slice(1));
  return rows
    .map((row) => row.trim().split(/\s+/))
    .find((columns) => columns[1]?.endsWith(suffix) && columns[3] === listening)?.[9];
}

function processIds(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function openFiles(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => readLink(`/proc/${pid}/fd/${fd}`) ?? []);
  } catch {
    return [];
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
