import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import { WatchedFiles } from '../config/watched-files.js';
import { algorithmOf, forEachParameter } from '../limiter/kinds/kinds.js';
import { ownLimit } from '../limiter/limits.js';
import { doubtsAbout } from './doubtful-rules.js';
import { parseRules } from './parse-rules.js';
import { completed, type KeyPolicy } from './policy.js';
import { RuleSet } from './rule-set.js';

/** The rules in force, which change with their file. */
export type Rules = Pick<
  WatchedFiles<RuleSet>,
  'current' | 'isStale' | 'onReload' | 'check' | 'close'
>;

/** What applies to a key that no rule matches. */
export function defaultPolicy(settings: Settings): KeyPolicy {
  const parameters = forEachParameter('field', ({ setting }) => settings[setting]);
  const algorithm = algorithmOf(settings.ALGORITHM, parameters);
  return completed({
    limits: [ownLimit(settings.WINDOW_MILLIS, settings.MAX_REQUESTS, algorithm)],
    maxRequestsInQueue: settings.MAX_REQUESTS_IN_QUEUE,
    queueOrder: undefined,
    requestsCanSetRate: settings.REQUESTS_CAN_SET_RATE,
    requestsCanModQueue: settings.REQUESTS_CAN_MOD_QUEUE,
    maxRequestsCeiling: settings.MAX_REQUESTS_CEILING,
    maxRequestsInQueueCeiling: settings.MAX_REQUESTS_IN_QUEUE_CEILING,
    requestsCanSetWindow: settings.REQUESTS_CAN_SET_WINDOW,
    windowMillisCeiling: settings.WINDOW_MILLIS_CEILING,
    requestsCanPause: false,
    requestsCanHold: settings.REQUESTS_CAN_HOLD,
    maxHoldMillis: settings.MAX_HOLD_MILLIS,
    maxCorrectedHits: undefined,
    deniedTakesRest: false,
    maxWaitMillis: 0,
    isShadow: false,
    isKnown: false,
    ruleName: undefined,
  });
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
