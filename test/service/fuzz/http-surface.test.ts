import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { say } from '../../support/chaos/expect-no-violations.js';
import { extent } from '../../support/extent.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { numberIn, seedIn } from '../../support/run-options.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { CALLERS, type Declared, rulesText, tokensText } from '../../support/fuzz/declared.js';
import { KeyAccount } from '../../support/fuzz/key-account.js';
import { runFuzz } from '../../support/fuzz/run-fuzz.js';
import type { Target } from '../../support/fuzz/target.js';

/** Bounds the memory: everything that a service logs is kept. */
const ROUND_SECONDS = 20;
const OTHER_TIMEOUT_MILLIS = 300_000;
const SETTINGS = {
  // No window ends during a run, so that its counts can be compared.
  WINDOW_MILLIS: '3600000',
  // The tests are not about the speed of a busy machine.
  STORE_TIMEOUT_MILLIS: '30000',
  MAX_EVENT_LOOP_DELAY_MILLIS: '60000',
  LOG_LEVEL: 'debug',
  LOG_2XX: 'true',
  LOG_4XX: 'true',
  ALLOWED_HOSTS: 't',
};
/** The ordinary tests send the same requests at every run. */
const ORDINARY = process.env.FUZZ_SECONDS ? {} : { FUZZ_SEED: '1' };
/** The first seed. It decides what is sent. */
const seed = seedIn({ ...ORDINARY, ...process.env }, 'FUZZ_SEED');
/** How long requests are sent to each service. */
const seconds = numberIn(process.env, 'FUZZ_SECONDS', extent(2, 6));
const redis = useRedis();
const folder = useTemporaryFolder();

afterEach(killReplicas);

/** Settings, and the rules and tokens that they declare. */
function declared(refusesStrangers: boolean): [Record<string, string>, Declared] {
  const name = uniqueKey();
  const [tokens, rules] = [join(folder, `${name}.tokens`), join(folder, `${name}.rules`)];
  const goesBy = { callers: CALLERS, refusesStrangers };
  writeFileSync(tokens, tokensText(goesBy));
  writeFileSync(rules, rulesText());
  const settings = {
    ...SETTINGS,
    AUTH_TOKENS_FILE: tokens,
    CONFIG_FILE: rules,
    UNKNOWN_KEYS: refusesStrangers ? 'deny' : 'allow',
  };
  return [settings, goesBy];
}

async function onRedis(settings: Readonly<Record<string, string>>): Promise<Target> {
  const prefix = `${uniqueKey()}:`;
  return {
    replica: await startReplica({ ...settings, REDIS_URL: redis.url, KEY_PREFIX: prefix }),
    keys: new KeyAccount(),
    store: { redis: redis.client, prefix },
  };
}

const starts: Record<string, () => Promise<Target>> = {
  'the embedded limiter': async () => ({
    replica: await startReplica(SETTINGS),
    keys: new KeyAccount(),
  }),
  Redis: () => onRedis(SETTINGS),
  'rules and tokens': async () => {
    const [settings, goesBy] = declared(true);
    return {
      replica: await startReplica(settings),
      keys: new KeyAccount(),
      declared: goesBy,
    };
  },
  'Redis, rules and tokens': async () => {
    const [settings, goesBy] = declared(false);
    return { ...(await onRedis(settings)), declared: goesBy };
  },
};

const rounds = Array.from({ length: Math.ceil(seconds / ROUND_SECONDS) }, (_, round) => ({
  seed: seed + round,
  seconds: Math.min(ROUND_SECONDS, seconds - round * ROUND_SECONDS),
}));

/** The ordinary tests take the services that have the most parts, of each store one. */
const ORDINARY_STARTS = ['rules and tokens', 'Redis, rules and tokens'];
const chosen = Object.entries(starts).filter(([name]) => {
  const isLong = process.env.FUZZ_SECONDS !== undefined;
  return isLong || extent(ORDINARY_STARTS.includes(name), true);
});

describe.each(chosen)('a service with %s, whatever is sent to it,', (name, start) => {
  test.each(rounds)(
    'answers well, counts only what it accepted, and goes on serving (seed $seed)',
    async (round) => {
      const target = await start();
      const report = await runFuzz(target, round.seed, round.seconds);
      const { violations, scenarios, statuses } = report;
      const answers = Object.values(statuses).reduce((sum, count) => sum + count, 0);
      const rate = Math.round(answers / report.seconds);
      say(
        `fuzz: ${name}, seed ${round.seed}, ${answers} answers, ${rate}/s, ` +
          JSON.stringify({ statuses, scenarios }),
      );
      if (violations.length > 0) {
        const replay = `npm run test:fuzz -- --seed ${round.seed} --seconds ${round.seconds}`;
        throw new Error(`${violations.length} violations (${replay}):\n${violations.join('\n')}`);
      }
      const refusals = target.declared ? ['401', '403', '429'] : [];
      expect(Object.keys(statuses)).toEqual(
        expect.arrayContaining(['200', '400', '404', '405', ...refusals]),
      );
    },
    ROUND_SECONDS * 1000 + OTHER_TIMEOUT_MILLIS,
  );
});
