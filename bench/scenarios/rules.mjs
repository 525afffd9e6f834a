// The cost of rules for a check: the embedded limiter with a thousand rules and with none, on the same 100,000 keys.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { inTurns } from '../lib/in-turns.mjs';
import { Server, SLUICE } from '../lib/processes.mjs';

const RULES = 1000;
const LOAD = { name: 'many', keys: 100_000 };

export async function rules(options) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  const file = join(folder, 'rules.json');
  // One rule matches each key: the rule's number is the key's number without its last two digits.
  const keys = Array.from({ length: RULES }, (_, i) => ({
    key_pattern: i === 0 ? 'many-[0-9]{1,2}' : `many-${i}[0-9]{2}`,
    key_pattern_is_regex: true,
    max_requests_per_window: 1_000_000_000 - i,
  }));
  writeFileSync(file, JSON.stringify({ keys }));
  try {
    const servers = [await start('without rules', {}), await start('rules', { CONFIG_FILE: file })];
    const { first, second, secondToFirst } = await inTurns('rules', servers, LOAD, options);
    return { none: first, thousand: second, thousandToNone: secondToFirst };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function start(name, environment) {
  return Server.start(name, SLUICE, { MAX_REQUESTS: '1000000000', ...environment }, 'ignore');
}
