import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import { WatchedFiles } from '../config/watched-files.js';
import { doubtsAbout } from './doubtful-rules.js';
import { parseRules } from './parse-rules.js';
import { completed, declaredBy, type KeyPolicy } from './policy.js';
import { RuleSet } from './rule-set.js';

/** The rules in force, which change with their file. */
export type Rules = Pick<
  WatchedFiles<RuleSet>,
  'current' | 'isStale' | 'onReload' | 'check' | 'close'
>;

/** What applies to a key that no rule matches. */
export function defaultPolicy(settings: Settings): KeyPolicy {
  return completed(declaredBy(settings));
}

/** The settings alone: one policy for all keys. */
export function withoutRules(settings: Settings): Rules {
  return {
    current: new RuleSet([], defaultPolicy(settings)),
    isStale: false,
    onReload: () => undefined,
    check: () => Promise.resolve(),
    close: () => undefined,
  };
}

/**
 * The rules of the file that the settings name, kept up to date. The settings are the defaults.
 * @throws SettingsError if the file can't be read, RulesError if it is invalid
 */
export async function openRules(settings: Settings, logger: Logger): Promise<Rules> {
  const path = settings.CONFIG_FILE;
  if (path === undefined) return withoutRules(settings);
  const defaults = defaultPolicy(settings);
  const describe = ({ digest, rules }: RuleSet): object => ({ digest, rules: rules.length });
  const file = await WatchedFiles.open(
    {
      what: 'rules',
      files: [{ variable: 'CONFIG_FILE', path }],
      parse: ([content]) => RuleSet.load(parseRules(String(content), path), defaults),
      describe,
    },
    logger,
  );
  logger.info({ file: path, ...describe(file.current) }, 'rules read');
  const warn = (rules: RuleSet): void => {
    for (const doubt of doubtsAbout(rules)) logger.warn({ file: path }, doubt);
  };
  warn(file.current);
  file.onReload(warn);
  return file;
}
