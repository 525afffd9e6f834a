import type { Logger } from 'pino';

import { SettingsError } from '../../config/settings-error.js';
import { WatchedFiles } from '../../config/watched-files.js';
import { Tokens } from './tokens.js';

const VARIABLE = 'AUTH_TOKENS_FILE';

/**
 * The tokens in a file, kept up to date. While the file is missing or empty, tokens are good for the metrics only,
 * which say so.
 * @throws SettingsError if the file can't be read, or is invalid
 */
export function watchTokenFile(
  path: string,
  logger: Logger,
  pollMillis?: number,
): Promise<WatchedFiles<Tokens>> {
  return WatchedFiles.open(
    {
      what: 'tokens',
      files: [{ variable: VARIABLE, path, isSecret: true }],
      parse: ([content]) => parse(path, String(content)),
      describe: ({ names }) => ({ names, count: names.length }),
      whenGone: (last) => last.whileGone(),
    },
    logger,
    pollMillis,
  );
}

function parse(path: string, text: string): Tokens {
  try {
    return Tokens.parse(text);
  } catch (error) {
    const got = `${JSON.stringify(path)} (${(error as Error).message})`;
    throw new SettingsError(VARIABLE, got, 'a JSON list of tokens');
  }
}
