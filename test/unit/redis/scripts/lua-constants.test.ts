import { MOST_TIMES_MAXIMUM } from '../../../../src/limiter/memory/approvals.js';
import { IDLE_WINDOWS } from '../../../../src/limiter/memory/limits/window.js';
import { backoffMillis } from '../../../../src/redis/shared/backoff.js';
import { CONTACT_GAP } from '../../../../src/redis/caller-history.js';
import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { REPLY } from '../../../../src/redis/scripts/amend-codec.js';
import {
  HEAD,
  VERDICT,
  WAITS_NOT,
  WAITS_WITHOUT_PLACE,
} from '../../../../src/redis/scripts/check-codec.js';
import { keysToInspect } from '../../../../src/redis/scripts/inspect-codec.js';
import { REPLY as REPORT_REPLY } from '../../../../src/redis/scripts/remaining-codec.js';
import { argumentsToRenew, keysToRenew } from '../../../../src/redis/scripts/renew-codec.js';
import { NO_SUCH_KEY } from '../../../../src/redis/scripts/settle-codec.js';
import {
  keysForNewWindow,
  keysInWindow,
  keysOf,
  sharedArguments,
} from '../../../../src/redis/scripts/shared-arguments.js';
import { LEASES_UNSETTLED, leasesUnsettled, RENEWAL } from '../../../../src/redis/waiting/lease.js';
import { MAX_IDS_PER_CALL } from '../../../../src/redis/waiting/withdrawals.js';
import { keyLimits } from '../../../support/limits.js';
import { SCRIPT_CALLER } from '../../../support/script-caller.js';
import { luaConstant, luaNumber } from '../../../support/lua-constants.js';

const names = new KeyNaming('p:').namesOf('key');
const leased = { names, places: 1, wakeNumber: 1, lookFor: 'queue' } as const;
const limits = keyLimits({ windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 1 });
const shared = sharedArguments({ ...SCRIPT_CALLER, limitsOf: () => limits }, names, limits, 0);

type Row = [file: string, name: string, value: number | string];

/** Rows of constants, with their names as Lua spells them. */
function rowsOf(file: string, constants: Readonly<Record<string, number>>): Row[] {
  return Object.entries(constants).map(([name, value]) => [
    file,
    name.replaceAll(/[A-Z]/g, '_$&').toUpperCase(),
    value,
  ]);
}

test.each<Row>([
  ['limits/window', 'IDLE_WINDOWS', IDLE_WINDOWS],
  ['amend', 'MOST_TIMES_MAXIMUM', MOST_TIMES_MAXIMUM],
  ['lib/history', 'CONTACT_GAP', CONTACT_GAP],
  ['lib/instance', 'LEASES_UNSETTLED', LEASES_UNSETTLED],
  ['lib/verdicts', 'HEAD', HEAD],
  ...rowsOf('lib/verdicts', VERDICT),
  ...rowsOf('amend', REPLY),
  ...rowsOf('remaining', REPORT_REPLY),
  ['settle', 'NO_SUCH_KEY', NO_SUCH_KEY],
  ['lib/checks', 'WAITS_NOT', WAITS_NOT],
  ['lib/checks', 'WAITS_WITHOUT_PLACE', WAITS_WITHOUT_PLACE],
  ['lib/calls', 'FIRST_OWN', shared.length + 1],
  ['lib/key-names', 'IN_WINDOW', keysInWindow(names).length],
  ['lib/key-names', 'FOR_NEW_WINDOW', keysForNewWindow(names).length],
  ['lib/key-names', 'PER_INSTANCE', keysOf(names).length],
  ['renew', 'NAMES_PER_KEY', keysToRenew(leased).length],
  ['renew', 'ARGUMENTS_PER_KEY', argumentsToRenew(leased).length],
  ['inspect', 'NAMES_PER_KEY', keysToInspect(names).length],
])('lua/%s.lua has the %s of the source: %s', (file, name, value) => {
  expect(luaConstant(file, name)).toBe(value);
});

test('a withdrawal has no more ids than a script passes to a command at a time', () => {
  expect(MAX_IDS_PER_CALL).toBeLessThanOrEqual(luaNumber('lib/chunks', 'SIZE'));
});

test('a key that Redis lost recovers for longer than the longest wait', () => {
  const longestWait = backoffMillis(1000, 1);
  // The same time again is for the call itself, and for a late replica.
  expect(luaNumber('lib/recovery', 'RECOVERY_MILLIS')).toBeGreaterThanOrEqual(2 * longestWait);
});

test('a lease that a living replica has just renewed shows that Redis is up', () => {
  const leastLeft = luaNumber('lib/recovery', 'LEASE_PART_LEFT');

  expect(leastLeft).toBeGreaterThan(RENEWAL);
  expect(leastLeft).toBeLessThan(1 - RENEWAL);
  expect(CONTACT_GAP).toBeLessThan(1 - leastLeft);
});

test('a key is settled again after 10 to 15 leases', () => {
  expect([leasesUnsettled(0), leasesUnsettled(1)]).toEqual([10, LEASES_UNSETTLED]);
});
