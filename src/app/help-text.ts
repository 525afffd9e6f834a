import { packageVersion } from '../common/package-version.js';
import { parseSettings, settingsSchema } from '../config/settings.js';
import { USAGE } from './command-line.js';

const NAME_COLUMNS = 32;

/** What `--help` prints. */
export function helpText(): string {
  const defaults = parseSettings({});
  const settings = settingsSchema.keyof().options.map((name) => {
    const value = defaults[name];
    return `  ${name.padEnd(NAME_COLUMNS)}${value === undefined ? '-' : String(value)}`;
  });
  return [
    `Sluice ${packageVersion()}, a rate-limiting service`,
    '',
    USAGE,
    '',
    'Settings are environment variables. docs/configuration.md explains them. Their defaults:',
    ...settings,
  ].join('\n');
}
