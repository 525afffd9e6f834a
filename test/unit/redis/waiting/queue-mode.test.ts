import {
  nextMode,
  type QueueEvent,
  type QueueMode,
  TRANSITIONS,
} from '../../../../src/redis/waiting/queue-mode.js';

const MODES = Object.keys(TRANSITIONS) as QueueMode[];
const EVENTS = [...new Set(MODES.flatMap((mode) => Object.keys(TRANSITIONS[mode])))];
const CELLS = MODES.flatMap((mode) =>
  EVENTS.map((event) => ({ mode, event, next: TRANSITIONS[mode][event as QueueEvent] })),
) as { mode: QueueMode; event: QueueEvent; next: QueueMode | undefined }[];

/** The modes with a settle call under way. */
const CALLING: readonly QueueMode[] = ['settling', 'resettling'];
const LIVING = MODES.filter((mode) => mode !== 'over');

/** The mode after some events. */
function after(start: QueueMode, ...events: QueueEvent[]): QueueMode {
  return events.reduce(nextMode, start);
}

/** The modes that some events can lead to. */
function reachableFrom(start: QueueMode): Set<QueueMode> {
  const reached = new Set([start]);
  for (const mode of reached) {
    for (const next of Object.values(TRANSITIONS[mode])) reached.add(next);
  }
  return reached;
}

test('a new queue can reach every mode', () => {
  expect([...reachableFrom('asking')].sort()).toEqual([...MODES].sort());
});

test.each(LIVING)(
  'a queue that is %s is over once it is empty, and after no other event',
  (mode) => {
    const ends = CELLS.filter((cell) => cell.mode === mode && cell.next === 'over');
    expect(ends.map(({ event }) => event)).toEqual(['emptied']);
  },
);

test('a queue that is over stays over, and takes no further request', () => {
  expect([...reachableFrom('over')]).toEqual(['over']);
  expect(() => nextMode('over', 'asked')).toThrow();
  expect(() => nextMode('over', 'ticketed')).toThrow();
});

test('the end of a call that was under way when a queue became empty is ignored', () => {
  for (const event of ['due', 'answered', 'failed'] as const) {
    expect(after('settling', 'emptied', event)).toBe('over');
  }
});

test('a settle call begins only when the turn of a queue in line has come', () => {
  const begins = CELLS.filter(
    ({ mode, next }) => next !== undefined && CALLING.includes(next) && !CALLING.includes(mode),
  );
  expect(begins).toEqual([{ mode: 'inLine', event: 'begun', next: 'settling' }]);
});

test('a queue has only one call under way at a time', () => {
  for (const mode of CALLING) expect(() => nextMode(mode, 'begun')).toThrow();
});

test('an answer or a failure ends a call, and comes only during a call', () => {
  for (const mode of LIVING) {
    for (const event of ['answered', 'failed'] as const) {
      if (CALLING.includes(mode)) expect(CALLING).not.toContain(nextMode(mode, event));
      else expect(() => nextMode(mode, event)).toThrow();
    }
  }
});

test('a failed call is made again', () => {
  for (const mode of CALLING) expect(after(mode, 'failed', 'begun')).toBe('settling');
});

test('an answered call leaves nothing to ask', () => {
  expect(after('inLine', 'begun', 'answered')).toBe('listening');
});

test('a queue in line stays there until its turn', () => {
  expect(nextMode('inLine', 'due')).toBe('inLine');
});

test('a queue that becomes due during a call is settled again after it', () => {
  expect(after('settling', 'due', 'answered', 'begun')).toBe('settling');
  expect(after('settling', 'due', 'due', 'failed', 'begun', 'answered')).toBe('listening');
});

test('a queue without a ticket has nothing to ask, and the first ticket makes it listen', () => {
  expect(after('asking', 'asked', 'due')).toBe('asking');
  expect(after('asking', 'ticketed')).toBe('listening');
  expect(after('asking', 'ticketed', 'due', 'begun')).toBe('settling');
});

test('further requests and tickets change no other mode', () => {
  for (const mode of LIVING) {
    expect(nextMode(mode, 'asked')).toBe(mode);
    if (mode !== 'asking') expect(nextMode(mode, 'ticketed')).toBe(mode);
  }
});

test.each(CELLS.filter(({ next }) => next === undefined))(
  '$event of a queue that is $mode is an error',
  ({ mode, event }) => {
    expect(() => nextMode(mode, event)).toThrow(`a queue that is ${mode} can't be ${event}`);
  },
);
