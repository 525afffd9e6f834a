import type { Redis } from 'ioredis';

import { FORM } from './redis-user.js';

type Send = (...command: [name: string, ...args: string[]]) => Promise<unknown>;

/** Makes a server forget all functions and scripts. The functions of a replica are those of its primary. */
export async function forgetScripts(server: { readonly command: Send }): Promise<void> {
  await server.command('SCRIPT', 'FLUSH', 'SYNC');
  if (FORM === 'script') return;
  try {
    await server.command('FUNCTION', 'FLUSH', 'SYNC');
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('READONLY'))) throw error;
  }
}

/** A client as {@link forgetScripts} takes it. */
export function asServer(client: Redis): { readonly command: Send } {
  return { command: (name, ...args) => client.call(name, ...args) };
}

/** How often a server has got the text of a script or a library, and how often it ran one, since CONFIG RESETSTAT. */
export async function textsSent(server: {
  readonly command: Send;
}): Promise<{ texts: number; runs: number }> {
  const stats = String(await server.command('INFO', 'commandstats'));
  const calls = (command: string): number =>
    Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  return FORM === 'function'
    ? { texts: calls('function\\|load'), runs: calls('fcall') }
    : { texts: calls('eval'), runs: calls('evalsha') };
}
