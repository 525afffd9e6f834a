import { readFileSync } from 'node:fs';

import type { Redis } from 'ioredis';

import { uniqueKey } from './unique-key.js';

const FOLDER = new URL('../../deploy/redis/', import.meta.url);

/** A file of `deploy/redis`, without `.acl`. */
export type RulesFile = 'user' | 'functions' | 'cluster' | 'sentinel-user';

/**
 * How Redis runs the scripts in tests: as functions, or by EVALSHA with SLUICE_TEST_FORM=script, as on servers before
 * 7.0.
 */
export const FORM = process.env.SLUICE_TEST_FORM === 'script' ? 'script' : 'function';

/** The command that runs the scripts in tests. */
export const OPERATION = FORM === 'function' ? 'FCALL' : 'EVALSHA';

/** The Redis user of services in tests, on servers and on sentinels. */
export const LIMITER_USER = { username: 'sluice', password: 'of-the-limiter' } as const;

/** The settings by which a service is that user, where its URL does not say so. */
export const AS_LIMITER_USER = {
  REDIS_USERNAME: LIMITER_USER.username,
  REDIS_PASSWORD: LIMITER_USER.password,
} as const;

/** The key prefixes of tests that have one of their own, and the clocks that some give to the scripts. */
const TEST_PREFIXES = 'test-*:';
const TEST_CLOCKS = '~test-clock-*';

/** The rules in a file, as ACL SETUSER takes them. */
export function rulesIn(file: RulesFile): string[] {
  return readFileSync(new URL(`${file}.acl`, FOLDER), 'utf8')
    .trim()
    .split(/\s+/);
}

/** The rules for another prefix or database, made from those of the files as docs/redis.md says. */
export function adaptedRules({ prefix = 'sluice:', database = 0 }): string[] {
  const rules = [
    ...rulesIn('user').map((rule) => rule.replace('sluice:', prefix)),
    ...(FORM === 'function' ? rulesIn('functions') : []),
  ];
  if (database === 0) return rules;
  return [
    ...rules.map((rule) => rule.replace(/:wake$/, `:wake:${database}`)),
    `+select|${database}`,
  ];
}

/** The rules of the Redis user of services in tests: the rules of the files, and the names of tests. */
export function limiterRules(topology: 'standalone' | 'cluster' = 'standalone'): string[] {
  const namesOfTests = adaptedRules({ prefix: TEST_PREFIXES }).filter((rule) => /^[~&]/.test(rule));
  return [
    ...rulesIn('user'),
    ...(FORM === 'function' ? rulesIn('functions') : []),
    ...(topology === 'cluster' ? rulesIn('cluster') : []),
    ...namesOfTests,
    TEST_CLOCKS,
  ];
}

/** Makes a user with these rules. @returns the settings by which a service is that user */
export async function createUser(
  admin: Redis,
  rules: readonly string[],
): Promise<{ REDIS_USERNAME: string; REDIS_PASSWORD: string }> {
  const { password } = LIMITER_USER;
  const username = uniqueKey();
  await admin.call('ACL', 'SETUSER', username, 'on', `>${password}`, ...rules);
  return { REDIS_USERNAME: username, REDIS_PASSWORD: password };
}

/** The URL of a server with the credentials of {@link LIMITER_USER}. */
export function asLimiterUser(url: string): string {
  return url.replace('//', `//${LIMITER_USER.username}:${LIMITER_USER.password}@`);
}

type Send = (...command: [name: string, ...args: string[]]) => Promise<unknown>;

/**
 * Sees that a server has refused nothing to anybody.
 * @param send sends a command to it as the default user
 * @throws Error that names what was refused, the user and the reason
 */
export async function expectNothingRefused(send: Send): Promise<void> {
  const all = (await send('ACL', 'LOG')) as string[][];
  // Without the right to call functions, a service asks for one, and then sends scripts.
  const entries = all.filter((entry) => FORM === 'function' || entry[7] !== 'fcall');
  if (entries.length === 0) return;
  const refused = entries.map((entry) => {
    const [, , , reason, , context, , object, , username] = entry;
    return `${object} (${reason}, ${context}) to ${username}`;
  });
  throw new Error(`Redis refused ${refused.join('; ')}`);
}
