import { OutputError } from './errors.js';
import { printable } from './printable.js';

/** Writes the lines of a result on standard output. @throws OutputError if they can't be written */
export function print(...lines: readonly string[]): Promise<void> {
  const text = lines.map((line) => `${printable(line)}\n`).join('');
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      reject(new OutputError(cause));
    };
    try {
      process.stdout.write(text, (error) => {
        if (error) fail(error);
        else resolve();
      });
    } catch (error) {
      // Node 20 throws if a file can't be written.
      fail(error);
    }
  });
}

/** Writes a result for other programs on standard output. @throws OutputError if it can't be written */
export function printJson(result: object): Promise<void> {
  return print(JSON.stringify(result));
}

/** Writes a line on standard error. */
export function writeLine(line: string): void {
  writeError(`${printable(line)}\n`);
}

/** Writes on standard error, as it is. A log that can't be written stops nothing: CMD keeps its approval. */
export function writeError(text: string): void {
  try {
    process.stderr.write(text);
  } catch {
    // There is nowhere to say so.
  }
}
