/**
 * The statements of a migration file: each ends with a semicolon at the end of a line, a comment is a whole line that starts
 * with `--`. Statements come without comments and semicolon, white space as it stands. Text after the last semicolon is an error.
 */
export function splitStatements(text: string): { ok: true; statements: string[] } | { ok: false; problem: string } {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trimEnd())
    .filter((line) => line !== "" && !line.trimStart().startsWith("--"));
  const statements: string[] = [];
  let open: string[] = [];
  for (const line of lines) {
    open.push(line);
    if (!line.endsWith(";")) continue;
    statements.push(open.join("\n").slice(0, -1).trim());
    open = [];
  }
  if (open.length > 0) return { ok: false, problem: `no semicolon after: ${open[0]?.trim()}` };
  return { ok: true, statements };
}

/** `001-tables.cql` as its number and name; undefined for names of another form. Numbers start at 1: 0 is the lock's row. */
export function parseFileName(fileName: string): { number: number; name: string } | undefined {
  const match = /^([0-9]{3})-([a-z0-9-]+)\.cql$/.exec(fileName);
  const number = Number(match?.[1] ?? 0);
  return match?.[2] === undefined || number === 0 ? undefined : { number, name: match[2] };
}
