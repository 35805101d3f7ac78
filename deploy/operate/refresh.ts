import { type Command, InvalidArgumentError } from "commander";
import { CommandProblem, programFor, runAsProcess, type Terminal, type Tools, withTools } from "./program.ts";
import { type StoredRefresh, standings } from "./refresh/facts.ts";
import { type Inspection, inspectionDocument, inspectionText } from "./refresh/report.ts";
import { readLags, readOpenLetters, readPendingCheck } from "./refresh/stages.ts";
import { readStored } from "./refresh/stored.ts";
import { waitsFor, waitsWithoutRows } from "./refresh/waits-for.ts";

/** `refresh inspect`. */
export function refreshProgram(terminal: Terminal): Command {
  const program = programFor(terminal, "refresh").description("Refreshes as an operator sees them.");
  program
    .command("inspect")
    .description("the request, its progress, every token's outcome and attempts, and what it waits for")
    .argument("<refresh-id>", "as its owner got it", parseRefreshId)
    .option("--json", "for programs: one JSON document", false)
    .action((refreshId: string, { json }: { json: boolean }) =>
      withTools(terminal, async (tools) => {
        const inspection = await inspect(tools, refreshId);
        tools.out(json ? `${JSON.stringify(inspectionDocument(inspection))}\n` : inspectionText(inspection));
        if (inspection.stored === undefined) throw new CommandProblem("there are no rows of this refresh");
      }),
    );
  return program;
}

/** Lags before rows: what a stage finished in between is then seen in the rows. */
async function inspect(tools: Tools, refreshId: string): Promise<Inspection> {
  const cassandra = await tools.cassandra();
  const facts = await readStored(cassandra, refreshId);
  const lags = await readLags(tools, refreshId, facts);
  const [check, letters, stored] = await Promise.all([
    readPendingCheck(tools, refreshId),
    readOpenLetters(tools, refreshId, facts),
    readStored(cassandra, refreshId),
  ]);
  const waits =
    stored === undefined ? waitsWithoutRows({ lags, letters }) : waitsFor({ ...countsOf(stored), lags, check, letters });
  return { refreshId, stored, lags, waits };
}

function countsOf(stored: StoredRefresh): { pendingCount: number; untouched: boolean } {
  const pending = standings(stored).filter(({ outcome }) => outcome === "pending");
  return { pendingCount: pending.length, untouched: pending.length === stored.tokenIds.length };
}

function parseRefreshId(text: string): string {
  const id = text.toLowerCase();
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) throw new InvalidArgumentError("It must be a UUID.");
  return id;
}

if (import.meta.main) await runAsProcess(refreshProgram);
