import { notATimeZone, timeZoneNamed } from '../../../../src/limiter/calendar/time-zones.js';

test.each([
  ['Europe/Berlin', 'Europe/Berlin'],
  ['europe/berlin', 'Europe/Berlin'],
  ['AMERICA/PORT-AU-PRINCE', 'America/Port-au-Prince'],
  ['utc', 'UTC'],
  // Second names, and names that Node does not list.
  ['US/Eastern', 'US/Eastern'],
  ['Etc/GMT-14', 'Etc/GMT-14'],
  ['CET', 'CET'],
])('%s is the time zone %s', (text, name) => {
  expect(timeZoneNamed(text)).toBe(name);
});

test.each([
  '',
  'Berlin',
  'Europe/Berln',
  ' Europe/Berlin',
  'Europe/Berlin ',
  '+01:00',
  '-0100',
  // ICU knows the following, but IANA does not.
  'BST',
  'pst',
  'SystemV/PST8',
])('%p is not a time zone', (text) => {
  expect(timeZoneNamed(text)).toBeUndefined();
});

test.each([
  ['Europe/Berln', 'Europe/Berlin'],
  ['europe_berlin', 'Europe/Berlin'],
  ['Berlin', 'Europe/Berlin'],
  ['new york', 'America/New_York'],
  ['Asia/Tokio', 'Asia/Tokyo'],
  ['UCT+0', 'UTC'],
])('the error for %s names %s', (text, name) => {
  expect(notATimeZone(text)).toBe(
    `must be a time zone such as Europe/Berlin; did you mean ${name}?`,
  );
});

test('every text has a nearest name', () => {
  for (const text of ['', '/', '+01:00', 'x'.repeat(1000), '__proto__', '東京']) {
    expect(notATimeZone(text)).toMatch(/; did you mean [\w/-]+\?$/);
  }
});
