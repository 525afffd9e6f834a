import {
  nextMode,
  type QueueEvent,
  type QueueMode,
  TRANSITIONS,
} from '../../../../src/redis/waiting/queue-mode.js';

const IMPOSSIBLE = undefined;

const EVENTS: readonly QueueEvent[] = [
  'asked',
  'ticketed',
  'due',
  'begun',
  'answered',
  'failed',
  'emptied',
];

/** Where each event leads, in the order of {@link EVENTS}. */
const EXPECTED: Record<QueueMode, (QueueMode | undefined)[]> = {
  asking: ['asking', 'listening', 'asking', IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, 'over'],
  listening: ['listening', 'listening', 'inLine', IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, 'over'],
  inLine: ['inLine', 'inLine', 'inLine', 'settling', IMPOSSIBLE, IMPOSSIBLE, 'over'],
  settling: ['settling', 'settling', 'resettling', IMPOSSIBLE, 'listening', 'inLine', 'over'],
  resettling: ['resettling', 'resettling', 'resettling', IMPOSSIBLE, 'inLine', 'inLine', 'over'],
  over: [IMPOSSIBLE, IMPOSSIBLE, 'over', IMPOSSIBLE, 'over', 'over', IMPOSSIBLE],
};

const CELLS = Object.entries(EXPECTED).flatMap(([mode, row]) =>
  EVENTS.map((event, i) => [mode as QueueMode, event, row[i]] as const),
);

test.each(CELLS.filter(([, , next]) => next !== IMPOSSIBLE))('%s, %s: %s', (mode, event, next) => {
  expect(nextMode(mode, event)).toBe(next);
});

test.each(CELLS.filter(([, , next]) => next === IMPOSSIBLE))('%s, %s: throws', (mode, event) => {
  expect(() => nextMode(mode, event)).toThrow(`a queue that is ${mode} can't be ${event}`);
});

test('every mode is in the table', () => {
  expect(Object.keys(TRANSITIONS).sort()).toEqual(Object.keys(EXPECTED).sort());
});
