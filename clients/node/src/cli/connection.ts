import { readFileSync } from 'node:fs';

import { type ClientOptions, SluiceClient } from '../index.js';
import type { Invocation } from './arguments.js';
import { CommandLineError } from './errors.js';
import { exitCodeOf } from './failures.js';
import { Messages } from './messages.js';
import { type Values, waitingOf } from './options.js';

const DEFAULT_URL = 'http://localhost:8080';

export interface Connection {
  readonly urls: readonly string[];
  readonly token: (() => string) | undefined;
}

/**
 * The addresses and the token of the options, or else of the environment.
 * @throws CommandLineError if the token can't be read or sent
 */
export function connectionOf(values: Values): Connection {
  const { SLUICE_URL, SLUICE_TOKEN, SLUICE_TOKEN_FILE } = process.env;
  const listed = (SLUICE_URL ?? '').split(',').map((url) => url.trim());
  const urls = values.url ?? listed.filter((url) => url !== '');
  const file = values['token-file'] ?? textIn(SLUICE_TOKEN_FILE);
  const token = textIn(SLUICE_TOKEN);
  return {
    urls: urls.length === 0 ? [DEFAULT_URL] : urls,
    token: file === undefined ? fixed(token) : tokenIn(file),
  };
}

function clientOf(
  { urls, token }: Connection,
  options: Omit<ClientOptions, 'url' | 'token'> = {},
): SluiceClient {
  try {
    return new SluiceClient({ url: urls, token, ...options });
  } catch (error) {
    if (error instanceof TypeError) throw new CommandLineError(error.message);
    throw error;
  }
}

function textIn(variable: string | undefined): string | undefined {
  return variable === '' ? undefined : variable;
}

function fixed(variable: string | undefined): (() => string) | undefined {
  if (variable === undefined) return undefined;
  const token = sendable(variable, 'in SLUICE_TOKEN');
  return () => token;
}

/** The token is read for each request, since what writes the file may renew it. */
function tokenIn(file: string): () => string {
  const read = (): string => sendable(readFileSync(file, 'utf8'), `in ${file}`);
  try {
    read();
  } catch (error) {
    if (error instanceof CommandLineError) throw error;
    throw new CommandLineError(`the token can't be read: ${(error as Error).message}`);
  }
  return read;
}

/** A token without white space around it. @throws CommandLineError if no header can have it */
function sendable(text: string, where: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  const problem = token === '' ? 'is empty' : 'has characters other than visible ASCII';
  throw new CommandLineError(`the token ${where} ${problem}`);
}

/**
 * Has a command ask Sluice about its key.
 * @param work returns the exit code
 * @returns the exit code, of a failure as well
 * @throws CommandLineError if the options are wrong
 */
export async function withClient(
  { operands: [key = ''], values }: Invocation,
  work: (client: SluiceClient, key: string, messages: Messages) => Promise<number>,
): Promise<number> {
  const connection = connectionOf(values);
  const client = clientOf(connection, waitingOf(values));
  const messages = new Messages(key, connection.urls, values);
  try {
    return await work(client, key, messages);
  } catch (error) {
    const code = exitCodeOf(error);
    messages.failed(error);
    return code;
  }
}
