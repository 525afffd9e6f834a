/** Writes a result on standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Writes a result for other programs on standard output. */
export function printJson(result: object): void {
  print(JSON.stringify(result));
}

/** Writes a line on standard error. */
export function writeLine(line: string): void {
  process.stderr.write(`${line}\n`);
}
