import { parseSettings } from '../../../../src/config/settings.js';
import { warnOfOpenAccess } from '../../../../src/service/callers/open-access-warning.js';
import type { LogLine } from '../../../support/replica-process.js';
import { recordLog } from '../../../support/recorded-log.js';

function warningsFor(environment: Record<string, string>): readonly LogLine[] {
  const log = recordLog();
  warnOfOpenAccess(parseSettings(environment), log.logger);
  return log.lines;
}

test.each(['0.0.0.0', '::', '10.1.2.3', '128.0.0.1', 'fe80::1', 'service.example'])(
  'a service on %s without tokens logs once what is open, and what to set',
  (host) => {
    expect(warningsFor({ HOST: host })).toMatchObject([
      {
        level: 'warn',
        host,
        open: ['checks', 'releases', 'overrides of limits', '/debug', '/ui', '/metrics'],
        set: 'AUTH_TOKENS_FILE',
        msg: 'no authentication configured',
      },
    ]);
  },
);

test('the warning leaves out features that are switched off', () => {
  const [line] = warningsFor({
    DEBUG_ENDPOINTS: 'false',
    REQUESTS_CAN_SET_RATE: 'false',
    REQUESTS_CAN_MOD_QUEUE: 'false',
    REQUESTS_CAN_SET_WINDOW: 'false',
  });

  expect(line?.open).toEqual(['checks', 'releases', '/metrics']);
});

test.each(['127.0.0.1', '127.9.8.7', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', 'localhost'])(
  'a service on %s, which only this machine reaches, logs no warning',
  (host) => {
    expect(warningsFor({ HOST: host })).toEqual([]);
  },
);

test('a service with tokens logs no warning', () => {
  expect(warningsFor({ AUTH_TOKENS_FILE: 'tokens.json' })).toEqual([]);
});
