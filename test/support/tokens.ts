import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { uniqueKey } from './unique-key.js';

/** The header of a request with a caller's token; with the first if it has several. */
export function bearer({ token }: { token: string | readonly string[] }): {
  Authorization: string;
} {
  return { Authorization: `Bearer ${typeof token === 'string' ? token : token[0]!}` };
}

/** Replaces the tokens in the file, all at once. A text is written unchanged. */
export async function writeTokens(file: string, content: unknown): Promise<void> {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  await writeFile(`${file}.new`, text, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** A new file with these callers. @returns its path */
export async function tokenFile(folder: string, ...callers: object[]): Promise<string> {
  const file = join(folder, uniqueKey());
  await writeTokens(file, callers);
  return file;
}
