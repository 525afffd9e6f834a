import { stringify } from 'yaml';

import { inOneLine } from '../common/texts.js';
import { readNamedFile } from '../config/named-file.js';
import { parseLimitsFile } from '../import/envoy-ratelimit/limits-file.js';
import { rulesOfLimits } from '../import/envoy-ratelimit/rules-of-limits.js';
import { parseRules } from '../rules/parse-rules.js';

/**
 * Prints rules with the limits of Envoy's rate limit service.
 * @returns a rules file, and what it can't do that the imported files do
 * @throws SettingsError for a file that can't be read, RulesErrors for all errors in files, RulesError for too many rules
 */
export function runImportCommand(files: readonly string[]) {
  const read = files.map((file) => parseLimitsFile(readNamedFile('import', file), file));
  const { rules, warnings } = rulesOfLimits(read);
  const header = [
    `Limits of ${files.join(', ')}, for CONFIG_FILE.`,
    'They are for keys by the default GRPC_KEY_TEMPLATE.',
  ];
  const text = [...header.map((line) => `# ${inOneLine(line)}\n`), stringify({ keys: rules })].join(
    '',
  );
  // Such as too many.
  parseRules(text, 'the imported rules');
  return { text, warnings };
}
