import type { Logger } from 'pino';

import { nearestName } from '../common/texts.js';
import { SECRETS } from './secret-files.js';
import { settingsSchema } from './settings.js';

type Environment = Readonly<Record<string, string | undefined>>;

const SETTINGS: readonly string[] = [
  ...Object.keys(settingsSchema.shape),
  ...SECRETS.map((name) => `${name}_FILE`),
];
/** Too many other variables have names like `PORT` and `HOST`. */
const MIN_LETTERS = 5;
const CANDIDATES = SETTINGS.filter((name) => name.length >= MIN_LETTERS);
/** Sorted once: a pod can have hundreds of variables. */
const BY_SORTED_LETTERS = new Map(CANDIDATES.map((name) => [sorted(name), name]));
/** A name may have one wrong letter for each group of this many letters. */
const LETTERS_PER_MISTAKE = 5;
/** Kubernetes sets such variables for a service: `sluice-admin` becomes `SLUICE_ADMIN_PORT=tcp://10.0.0.1:9090`. */
const SERVICE_LINK = /^(tcp|udp|sctp):\/\//;

/** Warns of each variable that seems to be a misspelt setting. Its value may be secret. */
export function warnOfMisspeltSettings(environment: Environment, logger: Logger): void {
  for (const [variable, value = ''] of Object.entries(environment)) {
    if (value === '' || SETTINGS.includes(variable) || SERVICE_LINK.test(value)) continue;
    const name = variable.replace(/^SLUICE_/i, '');
    const mistakes = Math.floor(name.replaceAll('_', '').length / LETTERS_PER_MISTAKE);
    const setting = nearestName(name, CANDIDATES, mistakes) ?? BY_SORTED_LETTERS.get(sorted(name));
    if (setting === undefined) continue;
    const problem = `${variable} is not a setting; did you mean ${setting}?`;
    logger.warn({ variable, setting }, problem);
  }
}

/** Equal for names of the same letters in another order. */
function sorted(name: string): string {
  return Array.from(name.toUpperCase()).sort().join('');
}
