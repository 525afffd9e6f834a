import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import { SettingsError } from '../config/settings-error.js';
import { WatchedFiles } from '../config/watched-files.js';
import { parseRules } from './parse-rules.js';
import type { KeyPolicy } from './policy.js';
import { RuleSet } from './rule-set.js';

const VARIABLE = 'CONFIG_FILE';

/** What applies to each key, as of now. */
export interface Rules {
  policyOf(key: string): KeyPolicy;
  /** The rules in force. */
  readonly current: RuleSet;
  /** The file was changed into a wrong one, and the rules before are in force. */
  readonly isStale: boolean;
  /** Reads the file now. */
  reload(): Promise<void>;
  /** Stops watching the file. */
  close(): void;
}

type RulesSettings = Pick<
  Settings,
  | 'CONFIG_FILE'
  | 'WINDOW_MILLIS'
  | 'MAX_REQUESTS'
  | 'MAX_REQUESTS_IN_QUEUE'
  | 'MAX_REQUESTS_CEILING'
  | 'MAX_REQUESTS_IN_QUEUE_CEILING'
  | 'REQUESTS_CAN_SET_RATE'
  | 'REQUESTS_CAN_MOD_QUEUE'
>;

/** What applies to a key that no rule matches. */
export function defaultPolicy(settings: RulesSettings): KeyPolicy {
  return {
    limits: {
      windowMillis: settings.WINDOW_MILLIS,
      maxRequests: settings.MAX_REQUESTS,
      maxRequestsInQueue: settings.MAX_REQUESTS_IN_QUEUE,
    },
    requestsCanSetRate: settings.REQUESTS_CAN_SET_RATE,
    requestsCanModQueue: settings.REQUESTS_CAN_MOD_QUEUE,
    maxRequestsCeiling: settings.MAX_REQUESTS_CEILING,
    maxRequestsInQueueCeiling: settings.MAX_REQUESTS_IN_QUEUE_CEILING,
    isShadow: false,
    isKnown: false,
    ruleName: undefined,
  };
}

/** The settings alone: one policy for all keys. */
export function withoutRules(settings: RulesSettings): Rules {
  const current = new RuleSet([], defaultPolicy(settings));
  return {
    current,
    isStale: false,
    policyOf: (key) => current.policyOf(key),
    reload: () => Promise.resolve(),
    close: () => undefined,
  };
}

/**
 * The rules of the file that the settings name, kept up to date, over the settings.
 * @throws SettingsError where it can't be read, or is wrong
 */
export async function openRules(settings: RulesSettings, logger: Logger): Promise<Rules> {
  const path = settings.CONFIG_FILE;
  if (path === undefined) return withoutRules(settings);
  const defaults = defaultPolicy(settings);
  const file = await WatchedFiles.open(
    {
      what: 'rules',
      files: [{ variable: VARIABLE, path }],
      parse: ([content]) => new RuleSet(parseFile(path, String(content)), defaults),
      describe: ({ digest, rules }) => ({ digest, rules: rules.length }),
    },
    logger,
  );
  const { digest, rules } = file.current;
  logger.info({ file: path, digest, rules: rules.length }, 'rules read');
  return {
    get current() {
      return file.current;
    },
    get isStale() {
      return file.isStale;
    },
    policyOf: (key) => file.current.policyOf(key),
    reload: () => file.check(),
    close: () => {
      file.close();
    },
  };
}

function parseFile(path: string, text: string): ReturnType<typeof parseRules> {
  try {
    return parseRules(text);
  } catch (error) {
    const got = `${JSON.stringify(path)} (${(error as Error).message})`;
    throw new SettingsError(VARIABLE, got, 'rules in JSON or YAML');
  }
}
